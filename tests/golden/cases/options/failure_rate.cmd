# status 0
# K29. debug.malloc.failure_rate=3: of nine requests with M_NOWAIT every third fails, those with M_WAITOK never; the
# kernel counts three failures.
cat >$TMP/w.wl <<'W'
kernel cpus=1 make_failures
type M_T "t"
sysctl debug.malloc.failure_rate=3
repeat 9 as i { x[i] = malloc 64 M_T M_NOWAIT
  y[i] = malloc 64 M_T M_WAITOK }
expect null(x[2]) && null(x[5]) && null(x[8]) && !null(x[0]) && !null(x[1]) && !null(x[7])
expect inuse(M_T) == 15 && requests(M_T) == 15
sysctl debug.malloc.failure_count
W
dtmalloc run $TMP/w.wl
