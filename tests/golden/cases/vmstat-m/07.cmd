# status 0
dtmalloc import vmstat-m tests/golden/cases/vmstat-m/07.txt >"$TMP/live.wl"
cat "$TMP/live.wl"
dtmalloc run "$TMP/live.wl" --report vmstat-m=capture
