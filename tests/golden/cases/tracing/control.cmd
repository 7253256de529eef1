# status 0
# REQ: DBUF-24, DBUF-25, DBUF-27. system(), freopen() and ftruncate() of the command, with and without -o.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_T "t"
repeat 3 as i { x[i] = malloc 64 M_T M_WAITOK }
W
program='dtmalloc::t:malloc {printf("a%d\n", ++n);} dtmalloc::t:malloc {system("echo shell %d; pwd >/dev/null", n);}
dtmalloc::t:malloc /n == 2/ {printf("b"); freopen("%s/moved", $$1); printf("c%d\n", arg3);} END {freopen(""); printf("end\n");}'
dtmalloc run $TMP/w.wl -qw -n "$program" $TMP
echo moved:
cat $TMP/moved
echo 'refused, and to a file:'
dtmalloc run $TMP/w.wl -q -n 'BEGIN {system("true");}'
echo status $?
dtmalloc run $TMP/w.wl -qw -n 'BEGIN {freopen("%s/nowhere/file", $$1); printf("still here\n");}' $TMP 2>$TMP/err
sed "s,$TMP,TMP," $TMP/err
dtmalloc run $TMP/w.wl -q -o $TMP/f -n 'BEGIN {printf("lost\n"); ftruncate();} END {printf("kept\n");}'
cat $TMP/f
dtmalloc run $TMP/w.wl -q -n 'BEGIN {printf("lost\n");} dtmalloc::t:malloc {ftruncate();} END {printf("kept\n");}' >$TMP/g
cat $TMP/g
