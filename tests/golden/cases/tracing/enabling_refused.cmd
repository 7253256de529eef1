# status 1
# K18. What cannot be enabled is named with what is missing: a probe, a provider, room, a permission, a file; never a
# bare number of an error.
echo 'a = malloc 100 M_TEMP M_WAITOK' >$TMP/w.wl
cd $TMP
for program in 'syscall::read:entry {}' 'fbt::maloc:entry {}' 'tick-10us {}' 'dtmalloc::tmp:malloc {}'; do
  dtmalloc run w.wl -n "$program"
done
dtmalloc run w.wl -x bufsize=16 -n 'BEGIN {trace(1); trace(2);}'
dtmalloc run w.wl -x bufpolicy=ring -x bufsize=40 -n 'BEGIN {} END {printf("%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7);}'
dtmalloc run w.wl -x strsize=4294967295 -n 'dtmalloc::temp:malloc {trace(execname); trace(probefunc);}'
dtmalloc run w.wl -n 'BEGIN {system("true");}'
dtmalloc run w.wl -a
dtmalloc run w.wl -s nowhere.d
dtmalloc dtrace -o nowhere/out -n 'BEGIN {exit(0);}'
