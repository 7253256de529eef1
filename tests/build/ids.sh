#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every requirement of tests/conformance/requirements/*.txt (`ID | source | paraphrase`) has its own
# id and a test that cites it; every id cited after `REQ:` exists; every deviation and quirk gives a
# reason.
set -eu
cd "$(dirname "$0")/../.."
export LC_ALL=C

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
# complain TEXT: one complaint for each line of standard input.
complain() {
  while IFS= read -r line; do
    printf '%s: %s\n' "$line" "$1"
    bad=$((bad + 1))
  done <"$tmp/list"
}

cat tests/conformance/requirements/*.txt | grep -vE '^[[:space:]]*(#|$)' >"$tmp/laws"
grep -vE '^[A-Z][A-Z0-9]*-[0-9]+[a-z]? +\| *[^| ][^|]* \| *[^ ]' "$tmp/laws" >"$tmp/list" || true
complain 'not of the form ID | source | paraphrase'

sed 's/ *|.*//' "$tmp/laws" | sort >"$tmp/ids"
uniq -d "$tmp/ids" >"$tmp/list"
complain 'given twice'

id='[A-Z][A-Z0-9]*-[0-9]+[a-z]?'
tests=$(find tests/unit tests/conformance tests/property tests/golden tests/stress tests/fuzz \
  tests/support -type f \( -name '*.[ch]pp' -o -name '*.[ch]' \) 2>/dev/null)
# A list of ids may go on over several comment lines, and a table row may hold its id as a string.
# shellcheck disable=SC2086 # a list of files
grep -hoE "\\b$id\\b" $tests | sort -u >"$tmp/cited"
sort -u "$tmp/ids" | comm -23 - "$tmp/cited" >"$tmp/list"
complain 'no test cites it'

# shellcheck disable=SC2046 # a list of folders
grep -rhE 'REQ:' $(ls -d src include sim tests) --include='*.[ch]pp' --include='*.[ch]' |
  sed 's/.*REQ://' | grep -oE "\\b$id\\b" | sort -u >"$tmp/required" || true
sort -u "$tmp/ids" | comm -13 - "$tmp/required" >"$tmp/list"
complain 'cited, but no requirement has this id'

grep -rnE '(DEVIATES|QUIRK):[[:space:]]*[^[:space:]]?.{0,11}$' src include sim tests \
  --include='*.[ch]pp' --include='*.[ch]' >"$tmp/list" || true
complain 'gives no reason'

[ $bad = 0 ] || {
  printf 'ids: %d complaints\n' $bad
  exit 1
}
printf 'ids: %d requirements, each cited by a test\n' "$(wc -l <"$tmp/ids")"
