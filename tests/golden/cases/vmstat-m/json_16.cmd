# status 0
# The bytes of release 16 come back, and its table by =capture.
cd "$TMP"
printf '{"__version":"2","vmstat":{"malloc-statistics":{"memory":[{"type":"y","in-use":10,"memory-use":400,"requests":20,"size":[16,32,64]}]}}}\n' >y.json
dtmalloc import vmstat-m y.json -o y.wl || exit 10
dtmalloc run y.wl --report vmstat-m --json
dtmalloc run y.wl --report vmstat-m=capture
