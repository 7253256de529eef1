#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The root shows only what the design names; sources are short, carry their licence, and hold no
# notes to self and no disabled tests. A file of tables says `Table:` in its head and may be longer.
set -eu
cd "$(dirname "$0")/../.."

bad=0
complain() {
  printf '%s\n' "$*"
  bad=$((bad + 1))
}

for name in *; do
  case $name in
    include | src | sim | tests | bench | CMakeLists.txt | CMakePresets.json) ;;
    README.md | CHANGELOG.md | LICENSE | build) ;;
    *) complain "$name: does not belong in the root" ;;
  esac
done

limit=800
files=$(find include src sim tests bench .ci -type f \( -name '*.[ch]pp' -o -name '*.[ch]' \
  -o -name '*.def' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt \
  -o -path tests/run -o -path bench/run -o -name '*.awk' -o -name '*.jq' -o -path sim/demo -o -path '.ci/*' \) | sort)
for file in CMakeLists.txt $files; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt $limit ] && ! head -n 12 "$file" | grep -q 'Table:'; then
    complain "$file: $lines lines, the limit is $limit"
  fi
  head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' ||
    complain "$file: no SPDX line in its first three"
  [ "$file" != tests/build/tree.sh ] || continue
  if notes=$(grep -nwE 'TODO|FIXME|XXX|GTEST_SKIP' "$file") ||
    notes=$(grep -nE '\bDISABLED_' "$file"); then
    complain "$file: $(printf '%s' "$notes" | head -n 1)"
  fi
done

[ $bad = 0 ] || {
  printf 'tree: %d complaints\n' $bad
  exit 1
}
printf 'tree: %d sources\n' "$(printf '%s\n' "$files" | wc -l)"
