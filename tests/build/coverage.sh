#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sheet tests/conformance/spec/malloc9.md is covered: each section N.M is the source of a
# requirement, each disagreement of section 8 has a line `# QUIRK: N (ID) text` with the id of a
# requirement and a row in QUIRKS.md with these ids, each vector of section 9 is the source of one. The
# check `ids` sees to it that a test cites each requirement.
# A source counts as one of this sheet when it follows `spec/malloc9.md`, or when the head of its
# file says that sources are sections of it.
set -eu
cd "$(dirname "$0")/../.."
export LC_ALL=C

sheet=tests/conformance/spec/malloc9.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

sed -n 's/^### \([0-9][0-9.]*[a-z]*\) .*/section \1/p' "$sheet" >"$tmp/all"
# The sheet counts its quirks and vectors itself: "36." and "15." are the last.
sed -n '/^## 8/,/^## 9/p' "$sheet" | grep -oE '(^|[.:] )[0-9]+\. ' | tr -d '.: ' |
  sort -n | sed 's/^/quirk /' >>"$tmp/all"
sed -n '/^## 9/,/^## 10/s/^\([0-9]*\)\. .*/vector \1/p' "$sheet" >>"$tmp/all"

awk -F'|' '
  FNR == 1 { own = 0 }
  /^#/ && !/QUIRK:/ && /sections? of [^|]*spec\/malloc9\.md/ { own = 1 }
  /^# QUIRK: / {
    line = $0; sub(/^# QUIRK: /, "", line)
    if (match(line, /\([A-Z0-9, -]+\)/) == 0) next
    numbers = substr(line, 1, RSTART - 1); names = substr(line, RSTART + 1, RLENGTH - 2)
    n = split(numbers, list, /[ ,]+/)
    for (i = 1; i <= n; ++i) if (list[i] != "") quirk[list[i]] = quirk[list[i]] " " names
    next
  }
  /^#/ || NF < 3 { next }
  {
    id = $1; gsub(/ /, "", id); known[id] = 1
    n = split($2, part, ";")
    for (i = 1; i <= n; ++i) {
      here = part[i]
      mine = own
      if (here ~ /[a-z]+\/[a-zA-Z0-9]+\.md|^ *(design|src|sim|cases)/) mine = here ~ /malloc9\.md/
      if (!mine) continue
      sub(/.*malloc9\.md/, "", here); sub(/(spec|src|sim)\/[a-z]+\.md.*/, "", here)
      m = split(here, word, /[ ,]+/)
      what = "section"; last = ""; through = 0
      for (j = 1; j <= m; ++j) {
        w = word[j]
        if (w ~ /^vectors?$/) what = "vector"
        else if (w ~ /^quirks?$/) what = "quirk"
        else if (w == "to") through = 1
        else if (w ~ /^[0-9][0-9.]*[a-z]*$/) {
          if (what == "vector" && w ~ /\./) what = "section"
          if (what == "section" && w ~ /^9\./) print "vector", substr(w, 3)
          else if (what == "section") print "section", w
          else if (what == "vector") print "vector", w
          if (through && last != "") {
            split(last, a, "."); split(w, b, ".")
            for (k = a[2] + 1; k < b[2]; ++k) print "section", a[1] "." k
          }
          through = 0; last = w
        }
      }
    }
  }
  END {
    for (number in quirk) {
      n = split(quirk[number], name, /[ ,]+/); good = n > 0
      for (i = 1; i <= n; ++i) if (name[i] != "" && !(name[i] in known)) {
        good = 0
        print "quirk " number ": no requirement has the id " name[i] > "/dev/stderr"
      }
      if (good) print "quirk", number
    }
  }' tests/conformance/requirements/*.txt 2>"$tmp/wrong" | sort -u >"$tmp/covered"

# QUIRKS.md and the requirements say the same ids.
sed -nE 's/^\| *([0-9]+) \|.*\| *([^|]*[^| ]) *\|$/\1 \2/p' tests/conformance/QUIRKS.md | sort -u >"$tmp/rows"
while read -r number ids; do
  for id in $(echo "$ids" | tr -d ','); do
    grep -hE "^# QUIRK: ([0-9]+, )*${number}[ ,]" tests/conformance/requirements/*.txt |
      grep -qE "[( ]${id}[,)]" || echo "quirk $number: QUIRKS.md says $id, no QUIRK line does" >>"$tmp/wrong"
  done
done <"$tmp/rows"
sed 's/ .*//' "$tmp/rows" | sort -u >"$tmp/numbers"
sed -n 's/^quirk //p' "$tmp/all" | sort -u | comm -23 - "$tmp/numbers" |
  sed 's/^/quirk without a row in QUIRKS.md: /' >>"$tmp/wrong"

sort -u "$tmp/all" | comm -23 - "$tmp/covered" | sort -k1,1 -k2,2V >"$tmp/missing"
sed 's/$/: not covered/' "$tmp/missing"
cat "$tmp/wrong"
if [ -s "$tmp/missing" ] || [ -s "$tmp/wrong" ]; then
  printf 'coverage: %d of %d missing\n' "$(wc -l <"$tmp/missing")" "$(wc -l <"$tmp/all")"
  exit 1
fi
printf 'coverage: %d sections, quirks and vectors, each with a requirement\n' "$(wc -l <"$tmp/all")"
