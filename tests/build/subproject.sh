#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# As a child of another project we build our libraries and nothing else: no tests, benches, command.
# Usage: subproject.sh SCRATCH-FOLDER
set -eu
scratch=$1/subproject
source=$(cd "$(dirname "$0")" && pwd)/subdir
rm -rf "$scratch"

cmake -G Ninja -S "$source" -B "$scratch" -D CMAKE_BUILD_TYPE=Debug
cmake --build "$scratch" --target parent
"$scratch/parent"
if ninja -C "$scratch" -t targets all |
  grep -E '(_test|_bench|/sim/|fuzz_)[^:]*: CXX_EXECUTABLE|dtm_sim|dtm_test_objects'; then
  echo "a parent project would build the above"
  exit 1
fi
