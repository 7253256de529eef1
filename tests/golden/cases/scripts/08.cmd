# status 0
# S08. A table of malloc(9) and free(9) by their arguments: the requested size, where dtmalloc tells the class's.
# free(NULL) prints no row, and dtmalloc has no firing for it.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_CAM "CAM I/O Scheduler"
a = malloc 100 M_TEMP M_WAITOK
b = malloc 70000 M_CAM M_WAITOK
wait 3s
free a
n = malloc 0 M_TEMP M_WAITOK
expect !null(n)
free b
fail = malloc 100G M_TEMP M_NOWAIT
expect null(fail)
free fail
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 08.d
dtmalloc run $TMP/w.wl -q -n 'dtmalloc::: {printf("%s %s %d\n", probefunc, probename, arg3);}'
