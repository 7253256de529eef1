# status 0
# The formats of all releases, by the machine's release and by name.
cd "$TMP"
printf 'kernel release=16 cpus=1 mem=1G\ntype M_T "t"\na = malloc 16 M_T M_WAITOK\nb = malloc 65536 M_T M_WAITOK\n' >w.wl
for release in 16 14 12 8; do
  echo "--- release $release"
  dtmalloc run w.wl --release $release --report vmstat-z >table || exit 10
  grep -E '^$|^ITEM|^256 Bucket|^(malloc-)?(16|32|65536):' table
  dtmalloc run w.wl --release $release --report vmstat-z=$release >again
  dtmalloc run w.wl --release $release --report vmstat-z | cmp - again || exit 11
done
echo '--- a machine of 16 as 12 prints it'
dtmalloc run w.wl --report vmstat-z=12 | grep -A 2 ITEM
echo '--- JSON'
for release in 16 14 12; do
  dtmalloc run w.wl --release $release --report vmstat-z --json
done | sed 's/"zone":.*\({"name":"[malloc-]*65536"\)/"zone":[...,\1/'
for capture in z1 z2 z3 z16; do
  sed "s/mem=1G/mem=1G capture=$capture/" w.wl >c.wl
  echo "--- $capture"
  dtmalloc run c.wl --report vmstat-z=capture | grep -E '^ITEM|^malloc-16:'
done
for report in vmstat-z=capture vmstat-z=13 vmstat-z= ddb-uma=x; do
  dtmalloc run w.wl --report $report
  echo "status $?" >&2
done
