# status 0
# S24. Totals without keys equal the sums of those with. There is no user stack: an empty key, no error.
cat >$TMP/w.wl <<'W'
kernel cpus=2
type M_A "a"
type M_B "b"
repeat 10 { x = malloc 100 M_A M_WAITOK }
cpu 1
repeat 5 { x = malloc 1000 M_A M_WAITOK }
repeat 3 { x = malloc 3000 M_B M_WAITOK }
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 24.d
