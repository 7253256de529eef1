# status 2
# K11, K28, K30. A type by its symbol or its description; a typo does not silently do nothing.
printf 'type M_DEMO "demo"\ntype M_CAM "CAM I/O Scheduler"\na = malloc 1 M_DEMO M_WAITOK\n' >"$TMP/w.wl"
dtmalloc run "$TMP/w.wl" --report peaks=demo
dtmalloc run "$TMP/w.wl" --report peaks=M_DEMO
dtmalloc run "$TMP/w.wl" --report types | tail -2
dtmalloc run "$TMP/w.wl" --report peaks=M_DEM
dtmalloc run "$TMP/w.wl" --report history=b
dtmalloc run "$TMP/w.wl" --report series=10
dtmalloc run "$TMP/w.wl" --report series=10ms,series=20ms
