#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sheets in tests/conformance/spec/ are covered. malloc9.md: each section N.M is the source of a
# requirement, each disagreement of section 8 has a line `# QUIRK: N (ID) text` with the id of a
# requirement and a row in QUIRKS.md with these ids, each vector of section 9 is the source of one.
# dtrace.md: each section is the source of a requirement, and a test names each error tag of section 25
# that the sheet does not call unused, or a line `# UNREACHABLE: TAG reason` says why it cannot arise.
# The check `ids` sees to it that a test cites each requirement.
# A golden case names each row of tests/golden/cases/cases.txt.
# A source counts as one of a sheet when it follows the sheet's name, or when the head of its file says
# that sources are sections of it.
set -eu
cd "$(dirname "$0")/../.."
export LC_ALL=C

sheet=tests/conformance/spec/malloc9.md
dsheet=tests/conformance/spec/dtrace.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

sed -n 's/^### \([0-9][0-9.]*[a-z]*\) .*/section \1/p' "$sheet" >"$tmp/all"
# The sheet counts its quirks and vectors itself: "36." and "15." are the last.
sed -n '/^## 8/,/^## 9/p' "$sheet" | grep -oE '(^|[.:] )[0-9]+\. ' | tr -d '.: ' |
  sort -n | sed 's/^/quirk /' >>"$tmp/all"
sed -n '/^## 9/,/^## 10/s/^\([0-9]*\)\. .*/vector \1/p' "$sheet" >>"$tmp/all"

# The sections of a sheet with the numbers N.M, and N where there are none.
sed -nE 's/^(##|###) ([0-9][0-9.]*[0-9]?)\.? .*/\2/p' "$dsheet" | sed 's/\.$//' | awk '
  { all[++n] = $0; split($0, part, "."); if ($0 ~ /\./) has[part[1]] = 1 }
  END { for (i = 1; i <= n; ++i) if (!(all[i] in has) && all[i] != 25) print "section", all[i] }' >"$tmp/dall"

# covered NAME: the sections, quirks and vectors of NAME.md that requirements give as their source
covered() {
  awk -F'|' -v sheet="$1" '
  BEGIN { file = sheet "\\.md" }
  FNR == 1 { own = 0 }
  /^#/ && !/QUIRK:/ && $0 ~ ("sections? of [^|]*spec/" file) { own = 1 }
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
      if (here ~ /[a-z]+[a-zA-Z0-9]*\.md|^ *(design|src|sim|cases)/) mine = here ~ file
      if (!mine) continue
      sub(".*" file, "", here); sub(/(spec|src|sim)\/[a-zA-Z0-9]+\.md.*/, "", here)
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
  }' tests/conformance/requirements/*.txt
}
covered malloc9 2>"$tmp/wrong" | sort -u >"$tmp/covered"
covered dtrace 2>/dev/null | grep '^section' | sort -u >"$tmp/dcovered"

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
sort -u "$tmp/dall" | comm -23 - "$tmp/dcovered" | sort -k2,2V | sed 's/^/dtrace.md /' >"$tmp/dmissing"
sed -nE '/unused\)$/!s/^\* `(D_[A-Z_0-9]+)` .*/\1/p' "$dsheet" | sort -u >"$tmp/tags"
{
  grep -rhoE 'D_[A-Z_0-9]+' tests/unit tests/conformance/*.cpp tests/golden tests/property
  sed -n 's/^# UNREACHABLE: //p' tests/conformance/requirements/*.txt | grep -oE 'D_[A-Z_0-9]+'
} | sort -u | comm -23 "$tmp/tags" - | sed 's/^/dtrace.md tag /' >>"$tmp/dmissing"
sed -nE 's/^([SK][0-9]+) \|.*/\1/p' tests/golden/cases/cases.txt | sort >"$tmp/cases"
find tests/golden/cases -name '*.cmd' -exec sed -n '/^#/p' {} + | grep -oE '\b[SK][0-9]{2}\b' | sort -u |
  comm -23 "$tmp/cases" - | sed 's/^/case /' >>"$tmp/dmissing"
sed 's/$/: not covered/' "$tmp/dmissing"
cat "$tmp/dmissing" >>"$tmp/missing"
cat "$tmp/dall" "$tmp/tags" "$tmp/cases" >>"$tmp/all"
cat "$tmp/wrong"
if [ -s "$tmp/missing" ] || [ -s "$tmp/wrong" ]; then
  printf 'coverage: %d of %d missing\n' "$(wc -l <"$tmp/missing")" "$(wc -l <"$tmp/all")"
  exit 1
fi
printf 'coverage: %d sections, quirks, vectors, tags and cases, each with a requirement or a test\n' "$(wc -l <"$tmp/all")"
