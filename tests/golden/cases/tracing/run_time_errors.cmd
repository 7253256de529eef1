# status 0
# K22. A NULL pointer that D follows is a message of this shape, with probe, address, action and offset; the run goes on,
# other clauses run, and the errors are added up at the end. An ERROR clause of one's own sees the same.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_T "t"
repeat 3 { a = malloc 64 M_T M_WAITOK
  free a }
W
dtmalloc run $TMP/w.wl -n 'BEGIN {n = 0;} dtmalloc::t:malloc {n++; this->p = n == 2 ? (struct malloc_type *)NULL : args[0];
printf("type %s", stringof(this->p->ks_shortdesc));} dtmalloc::t:malloc {printf("on %d", n);}
dtmalloc::t:free /((struct malloc_type *)4)->ks_next != NULL/ {trace(1);}'
echo status $?
dtmalloc run $TMP/w.wl -q -n 'dtmalloc::t:free {trace(*(int *)NULL);} ERROR {printf("action %d, fault %d, address %x\n", arg2, arg4, arg5);}'
dtmalloc run $TMP/w.wl -q --strict -n 'dtmalloc::t:free {x = 1 / (arg4 - arg4);}'
echo status $?
