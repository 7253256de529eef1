# status 0
dtmalloc import vmstat-m tests/golden/cases/vmstat-m/06.txt 2>/dev/null >"$TMP/live.wl"
dtmalloc run "$TMP/live.wl" -n 'dtmalloc::linux:malloc {@[args[3]] = count()}'
