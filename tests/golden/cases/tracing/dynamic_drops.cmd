# status 0
# K20. A space of few chunks: a store that finds none is a drop, of one of three kinds: every chunk is live, one was freed
# and waits for the cleaner (dirty), or the cleaner has seen it once (rinsing). Each is counted, and the variables are named.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_T "t"
type M_U "u"
repeat 20 as i { x[i] = malloc 64 M_T M_WAITOK }  # every chunk is live: what is beyond them is dropped
free x[0]                                         # a chunk is dirty
a = malloc 64 M_U M_WAITOK                        # dirty: self->u is dropped
repeat 2 as i { y[i] = malloc 64 M_T M_WAITOK }   # dirty: so are these two
wait 12ms                                         # one pass of the cleaner, at 101 hz
repeat 3 as i { y[i] = malloc 64 M_T M_WAITOK }   # rinsing: three
wait 12ms                                         # another: the chunk is clean
a = malloc 64 M_U M_WAITOK                        # and stored into
a = malloc 64 M_T M_WAITOK                        # every chunk is live: one more
W
cat >$TMP/t.d <<'D'
#pragma D option quiet
#pragma D option droptags
dtmalloc::t:malloc { n++; at[n] = timestamp + 1; }
dtmalloc::t:malloc /at[n]/ { stored++; }
dtmalloc::t:free { at[1] = 0; }
dtmalloc::u:malloc { self->u = 1; }
dtmalloc::u:malloc /self->u/ { kept++; }
END { printf("%d stores to at[], %d kept; %d to self->u kept\n", n, stored, kept); }
D
cd $TMP
dtmalloc run w.wl -x dynvarsize=1k -s t.d
echo status $?
dtmalloc run w.wl -x dynvarsize=1k -s t.d 2>&1 | sum
dtmalloc run w.wl -x dynvarsize=1k -s t.d 2>&1 | sum
dtmalloc run w.wl -s t.d
