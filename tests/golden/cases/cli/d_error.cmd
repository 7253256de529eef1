# status 1
dtmalloc run sim/examples/leak.wl -n 'dtmalloc::leeky:malloc {}' -o "$TMP/out"
s=$?
ls "$TMP"
exit $s
