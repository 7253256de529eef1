# status 1
# Thread variables and associative arrays: who allocated what, how long it lived, and a space that is too small.
# REQ: DVARS-01 DVARS-02 DVARS-04 DVARS-19
cat >$TMP/w.wl <<'W'
type M_HELLO "hello"
thread "writer" pid=200 execname="writer" { repeat 3 { w = malloc 100 M_HELLO M_WAITOK
  wait 2ms
  free w M_HELLO } }
thread "reader" pid=300 execname="reader" { repeat 2 { r = malloc 3000 M_HELLO M_WAITOK
  wait 5ms
  free r M_HELLO } }
W
cat >$TMP/t.d <<'D'
#pragma D option quiet
dtmalloc::hello:malloc { self->size = args[3]; self->calls++; total[execname] += args[3]; last[pid, execname] = self->calls; }
dtmalloc::hello:free
/self->size/
{
	printf("%s call %d of %d bytes\n", execname, self->calls, self->size);
	self->size = 0;
}
END { printf("writer %d, reader %d, nobody %d, last %d\n", total["writer"], total["reader"], total["x"], last[300, "reader"]); }
D
cd $TMP
dtmalloc run w.wl -s t.d
dtmalloc run w.wl -qx dynvarsize=136 -n 'dtmalloc::hello:malloc {a[n++] = 1}'
dtmalloc run w.wl -n 'BEGIN {a["x", 1] = 5; a["x", 2]; a[1] = 2}'
