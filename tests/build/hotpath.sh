#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The hot path's shape and cost. kern_malloc and kern_free save no register and call nothing; their
# cold parts are other functions. bench/hotpath, where it exists, is counted by callgrind:
# `hotpath MODE N` runs N pairs; MODE is `null` (the loop and its calls), `absent` (no hooks),
# `present` (hooks, disabled), `inline` (no calls at all), or what malloc and free fire: then a
# pair fires twice.
# Usage: hotpath.sh BUILD-FOLDER
set -eu
here=$(dirname "$0")
build=$1
pair_limit=64  # instructions of a pair, net of the loop
hook_limit=6   # what two disabled probes may add to a pair
stats_limit=14 # what keeping the statistics takes in a pair
stats=0

for function in kern_malloc kern_free; do
  code=$(objdump -d --no-show-raw-insn --disassemble=$function "$build/libdtmalloc_kmem.a" |
    grep -E '^ +[0-9a-f]+:') || code=
  [ -n "$code" ] || {
    echo "$function: not found in libdtmalloc_kmem.a"
    exit 1
  }
  if printf '%s\n' "$code" | grep -E '[[:space:]](push|call)q?\b|sub +\$0x[0-9a-f]+,%rsp'; then
    echo "$function: its hot part does the above"
    exit 1
  fi
  printf '%s: %d instructions, no push, no call\n' $function "$(printf '%s\n' "$code" | wc -l)"
  stats=$((stats + $(printf '%s\n' "$code" | awk -f "$here/statistics.awk")))
done
printf 'hundredths of an instruction for statistics, in a pair: %d\n' ${stats}00
[ $stats -gt 0 ] && [ $stats -le $stats_limit ] || {
  echo "the limit is ${stats_limit}00"
  exit 1
}

hotpath=$build/bench/hotpath
[ -x "$hotpath" ] || exit 0
# count MODE N: instructions that callgrind counts
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$hotpath" "$1" "$2" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
# per_pair MODE: hundredths of an instruction
per_pair() {
  echo $((($(count "$1" 110000) - $(count "$1" 10000)) / 1000))
}
null=$(per_pair null)
absent=$(($(per_pair absent) - null))
present=$(($(per_pair present) - null))
printf 'hundredths of an instruction a pair: hooks absent %d, disabled %d\n' $absent $present
[ $present -le $((pair_limit * 100)) ] || {
  echo "the limit is ${pair_limit}00"
  exit 1
}
[ $((present - absent)) -le $((hook_limit * 100)) ] || {
  echo "disabled hooks may add ${hook_limit}00"
  exit 1
}

inlined=$(($(per_pair inline) - null))
inline_limit=48
printf 'hundredths of an instruction of an inlined pair: %d\n' $inlined
[ $inlined -le $((inline_limit * 100)) ] || {
  echo "the limit is ${inline_limit}00"
  exit 1
}

# What a firing may add: hook (G10's must is 30), framework, then clauses by what they do.
firings='enabled:27 empty:44 count:51 count-probefunc:51 count-pointer:69 count-text:69
  quantize:67 predicate:87 count-tid:177 record-1:73 record-2:75 record-4:134 global-predicate:183
  thread-predicate:600'
plain=$((present + null))
bad=0
for firing in $firings; do
  mode=${firing%:*} limit=${firing#*:}
  used=$((($(count "$mode" 30000) - $(count "$mode" 10000)) / 200))
  used=$(((used - plain) / 2))
  printf 'hundredths of an instruction a firing, %s: %d\n' "$mode" $used
  [ $used -le $((limit * 100)) ] || {
    echo "the limit is ${limit}00"
    bad=1
  }
done
exit $bad
