# status 0
# K34. stack() has 20 frames unless stackframes says more; when a stack is deeper, a note states both. stack(n) gives what
# it is asked for, and the stacks of reports are whole.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_T "t"
a = malloc 64 M_T M_WAITOK @f1;f2;f3;f4;f5;f6;f7;f8;f9;f10;f11;f12;f13;f14;f15;f16;f17;f18;f19;f20;f21;f22;f23;f24
b = malloc 64 M_T M_WAITOK @g1;g2
W
dtmalloc run $TMP/w.wl -q -n 'dtmalloc::t:malloc {@[stack()] = count();}'
dtmalloc run $TMP/w.wl -q -x stackframes=25 -n 'dtmalloc::t:malloc {stack();}'
dtmalloc run $TMP/w.wl -q -x stackframes=2 -n 'dtmalloc::t:malloc {stack(); stack(3); printf("%d frames\n", stackdepth);}'
dtmalloc run $TMP/w.wl --report leaks=by-stack
