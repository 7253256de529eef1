#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs to a scratch prefix and builds consumers of it: C++ and kernel-style C, by find_package
# and by pkg-config. The allocator alone must bring nothing of the tracing tower.
# Usage: install.sh BUILD-FOLDER SCRATCH-FOLDER
set -eu
build=$1
source=$(cd "$(dirname "$0")" && pwd)/consume
rm -rf "$2/install"
mkdir -p "$2/install"
scratch=$(cd "$2/install" && pwd)

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
"$scratch/prefix/bin/dtmalloc" --version

cmake -G Ninja -S "$source" -B "$scratch/build" -D CMAKE_PREFIX_PATH="$scratch/prefix"
cmake --build "$scratch/build"
(cd "$scratch/build" && ctest --output-on-failure)
if nm -C "$scratch/build/allocator" | grep 'dtmalloc::dtrace::'; then
  echo "a program that links dtmalloc::kmem alone holds the tracing tower"
  exit 1
fi

PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name dtmalloc.pc)")
export PKG_CONFIG_PATH
cd "$scratch"
# shellcheck disable=SC2046 # lists of words
{
  g++ -std=c++20 "$source/tracing.cpp" $(pkg-config --cflags --libs dtmalloc) -o tracing
  gcc -std=gnu11 -Wall -Wextra -Werror -c "$source/kmod.c" $(pkg-config --cflags dtmalloc-compat)
  g++ -std=c++20 "$source/driver.cpp" kmod.o $(pkg-config --cflags dtmalloc) \
    $(pkg-config --libs dtmalloc-compat) -o driver
}
./tracing
./driver
