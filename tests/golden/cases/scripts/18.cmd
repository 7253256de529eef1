# status 0
# S18. printa() consumes nothing: 7, 7, 7. A sum printed at each of five ticks shows the reader's snapshot when it reads: of
# the whole second, 5 each time, or of each tick when it reads ten times a second; a snapshot adds what is new, once.
echo 'wait 10s' >$TMP/w.wl
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 18.d
for rates in '-x aggrate=1sec' '-x aggrate=100ms' '-x aggrate=100ms -x switchrate=100ms'; do
  dtmalloc run $TMP/w.wl -q $rates -n 'tick-5 {@ = sum(1); printa("%@d ", @);} tick-1100ms {exit(0);}'
done
