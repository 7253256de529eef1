# status 0
# S23. A buffer of 64k that fills: tracing ends at the next status check, no drops are counted, what fits is printed, and a
# note says which CPU's buffer it was. A record is 12 bytes of header, 256 of the name, 4 of padding and 8: 65536 / 280 =
# 234 on CPU 1 beside the 100 of CPU 0; the 5 of 16 bytes come too late.
cat >$TMP/w.wl <<'W'
kernel cpus=2
type M_A "a"
repeat 100 { x = malloc 100 M_A M_WAITOK }
cpu 1
repeat 10000 { x = malloc 100 M_A M_WAITOK }
wait 3s
cpu 0
repeat 5 { x = malloc 16 M_A M_WAITOK }
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 23.d | sort | uniq -c
