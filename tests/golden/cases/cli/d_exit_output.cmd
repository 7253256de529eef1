# status 1
# REQ: CLI-10. The statuses of a D program are not those of a refusal: the results stay.
printf 'type M_T "t"\na = malloc 10 M_T M_WAITOK\n' >"$TMP/w.wl"
for n in 1 2 7; do
  dtmalloc run "$TMP/w.wl" -q -n "dtmalloc::t:malloc {trace(\"seen\"); exit($n);}" -o "$TMP/out.$n"
  echo "status $?" >&2
  cat "$TMP/out.$n"
  echo
done
# Nothing can be written: said whatever the status.
dtmalloc run "$TMP/w.wl" -q -n 'dtmalloc::t:malloc {trace("seen"); exit(2);}' >/dev/full
echo "status $?" >&2
echo 'a = b' | dtmalloc run - -o "$TMP/none"
ls "$TMP"
printf 'type M_T "t"\na = malloc 10 M_T M_WAITOK\nfree a+1000000\n' | dtmalloc run - -q -n 'dtmalloc::t:malloc {trace("seen");}' >/dev/full
