#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each compile_fail/* is wrong in one way: it must not compile, and the compiler must say what the
# file's line `// error: EXTENDED-REGEX` expects. With -D FIXED it must compile.
set -eu
cd "$(dirname "$0")/../.."
export LC_ALL=C

tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
bad=0
number=0
for file in tests/build/compile_fail/*; do
  want=$(sed -n 's|^// error: ||p' "$file")
  case $file in
    *.cpp) compilers='g++ clang++' flags='-std=c++20' ;;
    *.c) compilers='gcc clang' flags='-std=gnu11 -Werror -Iinclude/dtmalloc/compat' ;;
  esac
  for compiler in $compilers; do
    number=$((number + 1))
    # shellcheck disable=SC2086 # a list of words
    if ! $compiler $flags -Iinclude -fsyntax-only -D FIXED "$file" >"$tmp" 2>&1; then
      echo "$file: does not compile with -D FIXED by $compiler: $(grep -m 1 error "$tmp")"
      bad=1
    # shellcheck disable=SC2086 # a list of words
    elif $compiler $flags -Iinclude -fsyntax-only "$file" >"$tmp" 2>&1; then
      echo "$file: compiles by $compiler"
      bad=1
    elif ! grep -qE "$want" "$tmp"; then
      echo "$file: $compiler says $(grep -m 1 error "$tmp"), not '$want'"
      bad=1
    fi
  done
done
[ $bad = 0 ] || exit 1
echo "compile_fail: $number refusals"
