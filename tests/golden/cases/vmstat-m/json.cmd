# status 0
# The JSON of a machine makes a workload whose JSON is the same; of each document version.
cd "$TMP"
printf 'type M_Q "a \\"quoted\\" name"\na = malloc 100 M_Q M_WAITOK\nb = malloc 5000 M_TEMP M_WAITOK\nc = malloc 70000 M_TEMP M_WAITOK\nfree b\n' >w.wl
for release in 16 14 12; do
  dtmalloc run w.wl --release $release --report vmstat-m --json >first.json || exit 10
  dtmalloc import vmstat-m first.json -o again.wl || exit 11
  dtmalloc run again.wl --report vmstat-m --json >second.json || exit 12
  grep '^kernel' again.wl
  cat second.json
done
