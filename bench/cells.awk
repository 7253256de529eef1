# SPDX-License-Identifier: BSD-2-Clause
# What the programs measured -> one line for each cell, tab-separated.
# In:  program, layout, round, row, label ("SUBJECT, UNIT"), counter, value
# Out: row, counter, kind, unit, value, best, worst, noisy (0 or 1)
#      kind: time (of a contender; the subject's first), ratio (counter "SUBJECT/OTHER", within each
#      run), value (any other number)
# A layout's value is the median over its rounds; the cell's is the median over the layouts, and
# best and worst are the least and the largest of theirs. Rounds with too few quiet repetitions
# count only in layouts that have no other. A row is noisy when most of its layouts are of that kind.
BEGIN { FS = OFS = "\t" }

{
  id = $1 "/" $4
  if (!(id in label)) row[++rows] = id
  label[id] = $5
  if (!((id, $6) in known)) {
    known[id, $6] = 1
    names[id] = names[id] (names[id] == "" ? "" : "\t") $6
  }
  if (!($2 in has_layout)) { has_layout[$2] = 1; layout[++layouts] = $2 }
  if (!($3 in has_round)) { has_round[$3] = 1; round[++rounds] = $3 }
  measured[id, $6, $2, $3] = $7
}

function median(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) {
      t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
    }
  return list[int((n + 1) / 2)]
}

# Prints the cell of a counter, or of its ratio to another one.
function cell(id, name, over, kind,   l, r, n, m, quiet_only, v, of_rounds, of_layouts, best, worst) {
  m = 0
  for (l = 1; l <= layouts; l++) {
    n = 0
    quiet_only = (id, layout[l]) in is_quiet
    for (r = 1; r <= rounds; r++) {
      if (!((id, name, layout[l], round[r]) in measured)) continue
      if (quiet_only && measured[id, "quiet", layout[l], round[r]] + 0 < 5) continue
      v = measured[id, name, layout[l], round[r]]
      if (over != "") {
        if (measured[id, over, layout[l], round[r]] + 0 <= 0) continue
        v = v / measured[id, over, layout[l], round[r]]
      }
      of_rounds[++n] = v
    }
    if (n == 0) continue
    v = median(of_rounds, n) + 0
    of_layouts[++m] = v
    if (m == 1 || v < best) best = v
    if (m == 1 || v > worst) worst = v
  }
  if (m == 0) return
  printf "%s\t%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%d\n", id, over == "" ? name : name "/" over, kind,
    over == "" ? unit : "ratio", median(of_layouts, m), best, worst, noisy
}

END {
  for (i = 1; i <= rows; i++) {
    id = row[i]
    subject = label[id]
    sub(/,.*/, "", subject)
    unit = label[id]
    sub(/^[^,]*, */, "", unit)
    seen = quiet = 0
    for (l = 1; l <= layouts; l++) {
      found = 0
      for (r = 1; r <= rounds; r++) {
        if (!((id, "quiet", layout[l], round[r]) in measured)) continue
        if (!found) seen++
        found = 1
        if (measured[id, "quiet", layout[l], round[r]] + 0 >= 5 && !((id, layout[l]) in is_quiet)) {
          is_quiet[id, layout[l]] = 1
          quiet++
        }
      }
    }
    noisy = quiet * 2 <= seen
    n = split(names[id], name, "\t")
    cell(id, subject, "", unit ~ /^ns / ? "time" : "value")
    for (k = 1; k <= n; k++) {
      if (name[k] == subject || name[k] == "quiet" || name[k] == "recording") continue
      if (name[k] == "firing") {
        unit = "ns a firing"
        cell(id, "firing", "", "value")
        continue
      }
      unit = label[id]
      sub(/^[^,]*, */, "", unit)
      cell(id, name[k], "", "time")
      cell(id, subject, name[k], "ratio")
    }
  }
}
