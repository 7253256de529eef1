# status 0
# A run's JSON with both reports is read by both imports; a document of the other table gives a pointer.
cd "$TMP"
printf 'type M_Q "q"\na = malloc 100 M_Q M_WAITOK\n' >w.wl
dtmalloc run w.wl --report vmstat-m,vmstat-z --json >both.json || exit 10
dtmalloc import vmstat-m both.json || exit 11
dtmalloc import vmstat-z both.json 2>&1 | grep -v ' used 0b' || exit 12
dtmalloc run w.wl --report vmstat-z --json >z.json || exit 13
dtmalloc import vmstat-m z.json 2>&1 && exit 14
dtmalloc run w.wl --report vmstat-m --json >m.json || exit 15
dtmalloc import vmstat-z m.json 2>&1 && exit 16
# A wrong member is a bad row, not bad JSON; the row named as an example can be imported.
printf '{"vmstat":{"malloc-statistics":{"memory":[{"type":5,"in-use":[],"size":3}]}}}' | dtmalloc import vmstat-m - 2>&1 && exit 17
printf 'temp 12 1K 36 16,32,64\n' | dtmalloc import vmstat-m -
