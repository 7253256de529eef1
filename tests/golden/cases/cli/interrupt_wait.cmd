# status 0
printf 'repeat 1000000 { wait 5000000s }\n' >"$TMP/long.wl"
dtmalloc run "$TMP/long.wl" -q -n 'tick-1ms {x++;} END {printf("end\n");}' >"$TMP/out" &
sleep 0.5
kill -INT $!
wait $!
s=$?
cat "$TMP/out"
exit $s
