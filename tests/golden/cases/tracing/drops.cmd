# status 0
# K19. Drops are exact: 1000 events on CPU 0 and 500 on CPU 1, lines and drops of a CPU add up to them, on every run the
# same. A record is a header of 12 bytes and an int: 4096 / 16 = 256 fit. A larger buffer, or one that is read more
# often, drops nothing.
cat >$TMP/w.wl <<'W'
kernel cpus=2
type M_T "t"
repeat 1000 as i { x[i] = malloc 64 M_T M_WAITOK }
cpu 1
repeat 500 as i { y[i] = malloc 64 M_T M_WAITOK }
W
trace() {
  dtmalloc run $TMP/w.wl -q -x bufsize=$1 -x switchrate=$2 -n 'dtmalloc::t:malloc {printf("cpu %d\n", cpu);}' |
    grep . | sort | uniq -c
}
echo '4k:'
trace 4k 1000sec
echo '4k again:'
trace 4k 1000sec 2>&1
echo '64k:'
trace 64k 1000sec
echo '4k, read every 10 us:'
trace 4k 10us
