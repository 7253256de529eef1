# status 0
printf 'critical { repeat 1000000000000 { a = malloc 16 M_TEMP M_NOWAIT\nfree a\n} }\n' >"$TMP/long.wl"
dtmalloc run "$TMP/long.wl" -q -n 'END {printf("end\n");}' >"$TMP/out" &
sleep 0.5
kill -INT $!
wait $!
s=$?
cat "$TMP/out"
exit $s
