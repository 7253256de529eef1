# status 3
# REQ: OPT-53. The reports after a panic are those of the moment.
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G config=GENERIC maxzones=1
type M_DF "df"
a = malloc 16 M_DF M_WAITOK
b = malloc 70000 M_DF M_WAITOK
free a
free a @foo_ioctl;foo_detach+0x2
W
cd "$TMP"
dtmalloc run w.wl --report vmstat-m,sysctl=vm.uma_kmem_total,sysctl=vm.uma.malloc_16.stats
