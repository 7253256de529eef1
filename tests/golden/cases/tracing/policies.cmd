# status 0
# REQ: DBUF-01, DBUF-02, DBUF-04, DBUF-11, DBUF-21. Buffer policies, a speculation, a panic action.
cat >$TMP/w.wl <<'W'
kernel cpus=2
type M_T "t"
repeat 1000 as i { x[i] = malloc 64 M_T M_WAITOK }
cpu 1
repeat 3 as i { y[i] = malloc 32 M_T M_WAITOK }
wait 3s
W
trace='dtmalloc::t:malloc {printf("%d:%d ", cpu, ++n);}'
echo 'switch:'
dtmalloc run $TMP/w.wl -q -x bufsize=256 -x switchrate=1000sec -n "$trace"
echo 'fill:'
dtmalloc run $TMP/w.wl -q -x bufsize=256 -x bufpolicy=fill -n "$trace END {printf(\"end\");}"
echo 'ring:'
dtmalloc run $TMP/w.wl -q -x bufsize=256 -x bufpolicy=ring -n "$trace END {printf(\"end\");}"
echo 'speculation:'
dtmalloc run $TMP/w.wl -q -x nspec=2 -n 'dtmalloc::t:malloc /n < 4/ {spec = speculation(); ++n;}
dtmalloc::t:malloc /spec/ {speculate(spec); printf("request %d\n", n);} dtmalloc::t:malloc /spec && n % 2/ {commit(spec); spec = 0;}
dtmalloc::t:malloc /spec/ {discard(spec); spec = 0;} BEGIN {n = 0; spec = 0;}'
echo 'panic:'
cd $TMP
dtmalloc run w.wl -qw -n 'dtmalloc::t:malloc /++n == 5/ {panic();}' 2>&1
echo status $?
