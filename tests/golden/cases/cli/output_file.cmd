# status 0
dtmalloc run sim/examples/leak.wl -o "$TMP/out"
ls "$TMP"
cat "$TMP/out"
