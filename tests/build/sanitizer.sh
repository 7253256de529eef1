#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds a sanitizer preset and runs its test programs. Usage: sanitizer.sh PRESET KIND...
set -eu
cd "$(dirname "$0")/../.."

preset=$1
shift
symbolizer=$(command -v llvm-symbolizer-14 || true)
export ASAN_OPTIONS="detect_stack_use_after_return=1:external_symbolizer_path=$symbolizer"
export UBSAN_OPTIONS="print_stacktrace=1:external_symbolizer_path=$symbolizer"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:external_symbolizer_path=$symbolizer"

cmake --preset "$preset"
targets=
for kind; do
  if [ -n "$(find "tests/$kind" -name '*_test.cpp' 2>/dev/null)" ]; then
    targets="$targets dtm_${kind}_test"
  fi
done
[ -n "$targets" ] || {
  echo "no tests of kind $*"
  exit 1
}
# shellcheck disable=SC2086 # a list of targets
cmake --build --preset "$preset" --target $targets
# ThreadSanitizer wants its shadow at fixed addresses: no randomised layout.
still=
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then
  still='setarch -R'
fi
# Each program runs as one process per core, which share its tests.
shards=$(nproc)
for target in $targets; do
  printf '== %s %s\n' "$preset" "$target"
  running=
  for shard in $(seq 0 $((shards - 1))); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard \
      $still "build/$preset/tests/$target" --gtest_brief=1 &
    running="$running $!"
  done
  failed=
  for process in $running; do wait "$process" || failed=yes; done
  [ -z "$failed" ]
done
