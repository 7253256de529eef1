# status 0
printf 'type M_T "t"\n' >"$TMP/w.wl"
dtmalloc run "$TMP/w.wl" --report leaks,leaks=by-stack,leaks=M_T,peaks,waste=t,findings,series=1ms,types
