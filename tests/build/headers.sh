#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public header compiles alone: *.hpp as C++ and *.h as C11 and as C++, with both compilers.
# Headers of compat are for C only and say so to a C++ compiler; one that is not modelled refuses at
# once, which is right too. Internal headers: g++ only.
set -eu
cd "$(dirname "$0")/../.."

# one COMPILER LANGUAGE HEADER
if [ "${1-}" = one ]; then
  flags='-Wall -Wextra -Werror -fsyntax-only'
  case $3 in
    c) flags="$flags -std=c11 -Iinclude/dtmalloc/compat" ;;
    c++) flags="$flags -std=c++20 -Isrc" ;;
  esac
  case $4 in
    include/*) name="<${4#include/}>" ;;
    src/*) name="\"${4#src/}\"" ;;
  esac
  if grep -q '^#error "not modelled: ' "$4"; then
    exit 0
  fi
  # Twice, so that the guard is tried too.
  # shellcheck disable=SC2086 # a list of words
  printf '#include %s\n#include %s\n' "$name" "$name" | "$2" -x "$3" $flags -Iinclude - && exit 0
  printf '%s: does not compile alone as %s with %s\n' "$4" "$3" "$2"
  exit 1
fi

jobs=$(
  for compiler in g++ clang++; do
    find include -name '*.hpp' -exec printf "$compiler c++ %s\n" {} +
  done
  for compiler in gcc clang; do
    find include -name '*.h' -exec printf "$compiler c %s\n" {} +
  done
  for header in $(find include -name '*.h'); do
    case $header in */compat/*) continue ;; esac
    printf 'g++ c++ %s\nclang++ c++ %s\n' "$header" "$header"
  done
  find src -name '*.hpp' -exec printf 'g++ c++ %s\n' {} +
)
printf '%s\n' "$jobs" | xargs -n 3 -P "$(nproc)" "$0" one
printf 'headers: %d compilations\n' "$(printf '%s\n' "$jobs" | wc -l)"
