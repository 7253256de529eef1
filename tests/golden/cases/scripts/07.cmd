# status 0
# S07. What one program makes the kernel allocate, in the default columns: CPU, id, `temp:malloc`, pid, name, size.
cat >$TMP/w.wl <<'W'
kernel cpus=2 seed=1
thread "a" pid=700 execname="newsyslog" cpu=1 {
  x = malloc 600 M_TEMP M_WAITOK
  y = malloc 128 M_TEMP M_WAITOK
}
thread "b" pid=701 execname="cron" {
  z = malloc 64 M_TEMP M_WAITOK
}
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 07.d
dtmalloc list $TMP/w.wl -n 'dtmalloc::temp:malloc'
