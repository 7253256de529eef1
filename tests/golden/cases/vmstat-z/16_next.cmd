# status 0
# The zone at its limit refuses who does not wait and puts to sleep who does; the other does not.
dtmalloc import vmstat-z tests/golden/cases/vmstat-z/16.txt 2>/dev/null >"$TMP/live.wl"
cat >>"$TMP/live.wl" <<'W'
n = uma_zalloc Z_MBUF_JUMBO_PAGE M_NOWAIT
expect null(n) && fails("mbuf_jumbo_page") == 1 && sleeps("mbuf_jumbo_page") == 0
thread "waiter" { w = uma_zalloc Z_MBUF_JUMBO_PAGE M_WAITOK }
wait 1ms
uma_zfree Z_MBUF_JUMBO_PAGE mbuf_jumbo_page[0]
join
expect !null(w) && fails("mbuf_jumbo_page") == 1 && sleeps("mbuf_jumbo_page") == 1
c = uma_zalloc Z_MBUF_CLUSTER M_NOWAIT
expect !null(c) && fails("mbuf_cluster") == 0
W
dtmalloc run "$TMP/live.wl" --report vmstat-m
