# SPDX-License-Identifier: BSD-2-Clause
# Two results of bench/run, $old and $new -> a line for each cell that differs, and how many there
# are of each verdict.
# A cell is worse (better) when its value grew (fell) by more than 10 % and each value lies outside
# the range of the other; instructions repeat exactly, so half of one is enough. What is noisy is
# not judged, only counted. On another machine only ratios and instructions
# count; times of the baselines never do.
def key: .row + " " + .name;
def cells: map({(key): .}) | add // {};
def counts($same): .kind == "ratio" or .kind == "instructions" or
  ($same and (.kind == "value" or (.subject // false)));
def judge($a; $b):
  if $a.noisy or $b.noisy then "noisy"
  elif $a.kind == "instructions" then
    if $b.value > $a.value + 0.5 then "worse" elif $b.value < $a.value - 0.5 then "better" else "same" end
  elif $b.value > 1.1 * $a.value and $b.value > $a.worst and $a.value < $b.best then "worse"
  elif 1.1 * $b.value < $a.value and $b.value < $a.best and $a.value > $b.worst then "better"
  else "same" end;
def number: if . == null then "-" else (. * 1000 | round / 1000 | tostring) end;

($old[0].machine == $new[0].machine) as $same
| ($old[0].cells | cells) as $a | ($new[0].cells | cells) as $b
| [($a | to_entries[] | select(.value | counts($same)) | .key as $k
    | {key: $k, old: .value, new: $b[$k],
       verdict: (if $b[$k] == null then "missing" else judge(.value; $b[$k]) end)}),
   ($b | to_entries[] | select(.value | counts($same)) | select($a[.key] == null)
    | {key: .key, old: null, new: .value, verdict: "added"})]
| (if $same then empty else "another machine: only ratios and instructions count" end),
  (.[] | select(.verdict | IN("same", "noisy") | not)
   | "\(.verdict)\t\(.key)\t\(.old.value | number) -> \(.new.value | number) \((.old // .new).unit)"),
  ([.[].verdict] | "\(length) cells: " +
   ([("worse", "better", "same", "noisy", "missing", "added") as $v
     | "\(map(select(. == $v)) | length) \($v)"] | join(", ")))
