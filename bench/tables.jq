# SPDX-License-Identifier: BSD-2-Clause
# A result of bench/run -> its tables, in Markdown.
def number: if . == null then "" elif . >= 100 then round | tostring
  elif . >= 10 then . * 10 | round / 10 | tostring
  elif . >= 1 then . * 100 | round / 100 | tostring
  else . * 1000 | round / 1000 | tostring end;
def range: "\(.best | number)..\(.worst | number)";
def wide: .worst > 1.1 * .best;
def bound: if . == null then "" else "<= \(number)" end;

"Machine: \(.machine).",
"Commit \(.commit), \(.date); \(.layouts) code layouts, \(.rounds) \(if .rounds == 1 then "round" else "rounds" end) of each\(if .quick then ", quick" else "" end).",
(.without[] | "\(sub("^bench: "; "") | .[0:1] | ascii_upcase)\(sub("^bench: "; "") | .[1:])."),
"",
"Value: the median over the layouts of the median of quiet repetitions, best..worst: over the layouts; the last column: its ratio to the baselines of the same run.",
"",
"| row | | value | best..worst | unit | over |",
"|---|---|---|---|---|---|",
(.cells as $cells
  | (reduce $cells[].row as $r ([]; if index([$r]) then . else . + [$r] end))[] as $name
  | [$cells[] | select(.row == $name)] as $row
  | ($row | map(select(.kind == "ratio")
      | "\(.name | sub("^[^/]*/"; "")) \(.value | number)" + (if wide then " (\(range))" else "" end))
     | join(", ")) as $over
  | ($row | map(select(.subject or .kind == "value" or .kind == "instructions")))
  | to_entries[]
  | "| \(.value.row) | \(.value.name) | \(if .value.noisy then "noisy" else .value.value | number end) | \(if .value.kind == "instructions" then "" else .value | range end) | \(.value.unit) | \(if .key == 0 then $over else "" end) |"),
"",
"| | what | must | aim | ours | best..worst | verdict |",
"|---|---|---|---|---|---|---|",
(.budget[]
  | "| \(.id) | \(.what) | \(.must | bound) | \(.aim | bound) | \(if .verdict == "noisy" then "noisy" else .value | number end) | \(if .value == null then "" else range end) | \(.verdict) |")
