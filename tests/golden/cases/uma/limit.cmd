# status 0
# Case Z16, K26: a zone at its limit. The next M_NOWAIT is null and counts a failure; M_WAITOK sleeps
# until another thread frees, and counts a sleep.
cat >$TMP/w.wl <<'W'
kernel release=16 cpus=2 mem=1G
zone Z "mbuf_jumbo_page" size=4096 limit=12800 warning="kern.ipc.nmbjumbop limit reached"
repeat 12800 as i { x[i] = uma_zalloc Z M_NOWAIT }
expect !null(x[12799]) && fails("mbuf_jumbo_page") == 0
a = uma_zalloc Z M_NOWAIT
expect null(a) && fails("mbuf_jumbo_page") == 1 && sleeps("mbuf_jumbo_page") == 0
thread "waiter" cpu=1 {
  b = uma_zalloc Z M_WAITOK
  expect !null(b)
}
wait 1s
expect sleeps("mbuf_jumbo_page") == 1
uma_zfree Z x[0]
join
expect fails("mbuf_jumbo_page") == 1 && sleeps("mbuf_jumbo_page") == 1
W
dtmalloc run $TMP/w.wl
