#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What bench/run says without measuring: its list, its refusals, comparisons, and the arithmetic
# from measurements to cells, budget and tables.
set -eu
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
complain() {
  printf '%s\n' "$*"
  bad=$((bad + 1))
}
# expect STATUS TEXT ARGUMENT...: bench/run ends with STATUS and says TEXT.
expect() {
  status=$1 text=$2
  shift 2
  got=0
  bench/run "$@" >"$tmp/out" 2>&1 </dev/null || got=$?
  [ "$got" = "$status" ] || complain "bench/run $*: status $got, not $status"
  grep -qF -e "$text" "$tmp/out" || {
    complain "bench/run $*: does not say: $text"
    cat "$tmp/out"
  }
}

expect 0 'usage: bench/run' --help
for file in bench/*_bench.cpp; do
  program=${file#bench/}
  expect 0 "${program%_bench.cpp} " --list
done
expect 2 'no option --fast' --fast
expect 2 'no option pairs' pairs
expect 2 '--json needs an argument' --json
expect 2 '--only needs an argument' --only
expect 2 '--only names no bench' --only ''
expect 2 'no bench pears' --only pairs,pears
expect 2 '--rounds 0' --rounds 0
expect 2 '--rounds 2x' --rounds 2x
expect 2 '--seed 100000' --seed 100000
expect 2 'cannot be written' --json "$tmp/none/result.json"
expect 2 'cannot be read' --compare "$tmp/none.json"
echo '{"machine": "m", "cells": [{"row": 1}]}' >"$tmp/bad.json"
expect 2 'is no result of bench/run' --compare "$tmp/bad.json"
echo '{' >"$tmp/bad.json"
expect 2 'is no result of bench/run' --compare "$tmp/bad.json" "$tmp/bad.json"

# result MACHINE CELL...: a result file; a cell is name:kind:value:best:worst:noisy of the row r.
result() {
  machine=$1
  shift
  printf '%s\n' "$@" | jq -R -s --arg machine "$machine" '{machine: $machine, cells:
    [split("\n")[] | select(length > 0) | split(":")
     | {row: "r", name: .[0], kind: .[1], unit: "u", value: (.[2] | tonumber),
        best: (.[3] | tonumber), worst: (.[4] | tonumber), noisy: (.[5] == "1"),
        subject: (.[0] == "ours")}]}'
}
# compared STATUS TEXT MACHINE CELL...: what the comparison with these cells says.
compared() {
  status=$1 text=$2
  shift 2
  result "$@" >"$tmp/new.json"
  expect "$status" "$text" --compare "$tmp/old.json" "$tmp/new.json"
}
ours=ours:time:10:9.5:10.5:0 theirs=theirs:time:10:10:10:0 ratio=ours/theirs:ratio:1:0.95:1.05:0
firing=firing:value:4:3.9:4.1:0 pair=pair:instructions:57:57:57:0
result m $ours $theirs $ratio $firing $pair >"$tmp/old.json"
compared 0 '4 cells: 0 worse, 0 better, 4 same, 0 noisy, 0 missing, 0 added' \
  m $ours $theirs $ratio $firing $pair
# More than 10 %, outside of both ranges.
compared 1 'worse	r firing	4 -> 5 u' m $ours $ratio firing:value:5:4.9:5.2:0 $pair
compared 0 'better	r firing	4 -> 3 u' m $ours $ratio firing:value:3:2.9:3.1:0 $pair
# More than 10 %, but one's value lies in the other's range; less than 10 %.
compared 0 '4 same' m $ours $ratio firing:value:5:3.9:5.2:0 $pair
compared 0 '4 same' m $ours $ratio firing:value:4.3:4.2:4.4:0 $pair
# What a baseline takes is no loss of ours.
compared 0 '4 same' m $ours theirs:time:20:20:20:0 $ratio $firing $pair
# One instruction is one instruction.
compared 1 'worse	r pair	57 -> 58 u' m $ours $ratio $firing pair:instructions:58:58:58:0
compared 0 'better	r pair	57 -> 56 u' m $ours $ratio $firing pair:instructions:56:56:56:0
compared 0 '3 same, 1 noisy' m $ours $ratio firing:value:9:9:9:1 $pair
compared 0 'missing	r firing	4 -> - u' m $ours $ratio $pair
compared 0 'added	r new	- -> 1 u' m $ours $ratio $firing $pair new:value:1:1:1:0
# On another machine nanoseconds say nothing.
compared 0 'another machine' other ours:time:99:99:99:0 $ratio firing:value:9:9:9:0 $pair
compared 0 '2 cells: 0 worse' other ours:time:99:99:99:0 $ratio firing:value:9:9:9:0 $pair
compared 1 'worse	r ours/theirs	1 -> 2 u' other $ours ours/theirs:ratio:2:1.9:2.1:0 $pair

# measured LAYOUT ROUND OURS GLIBC MIMALLOC QUIET: a run of two rows.
measured() {
  for row in tight/16 tight/4096; do
    for cell in "glibc $4" "mimalloc $5" "ours $3" "quiet $6"; do
      printf 'pairs\t%s\t%s\t%s\tours, ns a pair\t%s\t%s\n' "$1" "$2" $row ${cell% *} ${cell#* }
    done
  done
}
# cell NAME VALUE BEST WORST NOISY: of tight/16, in what cells.awk made.
cell() {
  grep -q "^pairs/tight/16	$1	[a-z]*	[a-z ]*	$2	$3	$4	$5\$" "$tmp/cells" || {
    complain "cells.awk: no $*"
    cat "$tmp/cells"
  }
}
# Layout 0: the median of its two quiet rounds is the lower one; layout 2 has no quiet round.
{
  measured 0 1 4 8 10 9
  measured 0 2 5 10 10 9
  measured 0 3 90 10 10 2
  measured 1 1 6 8 10 9
  measured 2 1 8 8 10 0
} >"$tmp/measured"
awk -f bench/cells.awk "$tmp/measured" >"$tmp/cells"
cell ours 6.0000 4.0000 8.0000 0
cell ours/glibc 0.7500 0.5000 1.0000 0
cell ours/mimalloc 0.6000 0.4000 0.8000 0
sed 's/quiet	9/quiet	4/' "$tmp/measured" | awk -f bench/cells.awk >"$tmp/noisy"
[ "$(grep -vc '	1$' "$tmp/noisy")" = 0 ] || complain 'cells.awk: unquiet rows are not noisy'

cat >"$tmp/hotpath" <<'TEXT'
kern_malloc: 38 instructions, no push, no call
kern_free: 25 instructions, no push, no call
hundredths of an instruction a pair: hooks absent 5600, disabled 5750
hundredths of an instruction a firing, enabled: 2701
TEXT
awk -f bench/instructions.awk "$tmp/hotpath" >>"$tmp/cells"
awk -f bench/budget.awk "$tmp/cells" >"$tmp/budget"
# budget ID VALUE VERDICT: one of the id's lines says so.
budget() {
  awk -F '\t' -v id="$1" -v value="$2" -v verdict="$3" \
    '$1 == id && $5 == value && $8 == verdict {found = 1} END {exit !found}' "$tmp/budget" || {
    complain "budget.awk: no $*"
    cat "$tmp/budget"
  }
}
# What is not there for all its classes is not measured; the others are.
budget G1 '' 'not measured'
budget G7 57.5 must
budget G7 0 aim
budget G8 0.75 aim
budget G10 27 must
for id in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
  grep -q "^G$id	" "$tmp/budget" || complain "budget.awk: nothing of G$id"
done

[ $bad = 0 ] || exit 1
echo 'bench_run: lists, refuses, compares and reckons'
