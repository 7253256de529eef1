# status 0
printf 'type M_E "echo_buffer"\na = malloc 260 M_E M_WAITOK\n' >"$TMP/a.wl"
for r in 8 12 14 16; do dtmalloc run "$TMP/a.wl" --release $r; done
dtmalloc run "$TMP/a.wl" --report vmstat-m=8,vmstat-m=14 --json
