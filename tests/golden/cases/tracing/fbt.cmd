# status 0
# REQ: DSYM-02, DSYM-30, DSYM-33. A request beside what was given for it, and who made it.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_FOO "foo"
repeat 1000 {
  a = malloc 64 M_TEMP M_WAITOK
  free a
}
b = malloc 100 M_FOO M_NOWAIT @foo_attach+0x1c
b = realloc b 5000 M_FOO M_WAITOK @foo_ioctl+0x40;foo_grow
free b
W
dtmalloc run $TMP/w.wl -q -n 'fbt::malloc:entry /arg0 == 64/ {n = arg0;} dtmalloc::temp:malloc /n/ {@[n, arg3] = count(); n = 0;}'
dtmalloc run $TMP/w.wl -q -n 'fbt::malloc:entry /arg1 == (uint64_t)&`M_FOO/ {@[stack()] = sum(arg0);}'
dtmalloc run $TMP/w.wl -n 'dtmalloc::foo:malloc {trace(arg3); stack();}'
dtmalloc run $TMP/w.wl -F -n 'fbt::realloc:entry {on = 1;} fbt::realloc:,fbt::malloc:,fbt::free: /on/ {trace(arg1 != 0);} fbt::realloc:return {on = 0;}'
