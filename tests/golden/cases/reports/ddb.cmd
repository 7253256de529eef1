# status 0
# What ddb(4) shows, of releases 16 and 14, and after a panic.
cd "$TMP"
cat >w.wl <<'W'
kernel release=16 cpus=2 mem=1G
type M_T "t"
type M_MINUS "minus"
a = malloc 16 M_T M_WAITOK
b = malloc 65536 M_T M_WAITOK
c = malloc 70000 M_T M_WAITOK
d = malloc 128 M_T M_WAITOK
free d M_MINUS
W
for release in 16 14; do
  dtmalloc run w.wl --release $release --report ddb-malloc,ddb-uma,ddb-malloc=i,ddb-uma=i,ddb-umacache |
    grep -E 'Type|Zone|temp|minus|[ "]t[ "]|malloc-(16|128|65536)\>'
done
echo '--- after a panic'
echo 'free a+64M' >>w.wl
dtmalloc run w.wl --report vmstat-m=14,ddb-malloc,sysctl=vm.uma.malloc_16.stats
echo "status $?" >&2
dtmalloc run w.wl --report ddb-malloc --json
echo "status $?" >&2
