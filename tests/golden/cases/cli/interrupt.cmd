# status 0
printf 'type M_A "a"\nrepeat 1000000000000 { a = malloc 16 M_A M_WAITOK\nfree a\n}\n' >"$TMP/long.wl"
dtmalloc run "$TMP/long.wl" -q -n 'dtmalloc::a:malloc {@n = count();} END {printa("%@d\n", @n);}' >"$TMP/out" &
sleep 0.5
kill -INT $!
wait $!
s=$?
sed 's/[1-9][0-9]*/N/' "$TMP/out"
exit $s
