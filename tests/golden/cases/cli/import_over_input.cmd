# status 1
# Refused before anything is said about the table.
printf 'Type InUse MemUse HighUse Requests  Size(s)\n       temp     1     1K       -        2  64\n' >"$TMP/t"
dtmalloc import vmstat-m "$TMP/t" -o "$TMP/t" 2>&1 | sed "s|$TMP|TMP|g" >&2
dtmalloc import vmstat-m - -o "$TMP/t" <"$TMP/t" 2>/dev/null
