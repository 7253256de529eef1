# status 0
# What lies in caches goes back: the list with drain, the rest with drain_cpu.
cat >$TMP/w.wl <<'W'
kernel release=16 cpus=1 mem=64M
type M_T "t"
repeat 2000 as i { x[i] = malloc 2048 M_T M_WAITOK }
repeat 2000 as i { free x[i] }
expect free_pages < 15400
reclaim trim zone="malloc-64"
expect free_pages < 15400
reclaim drain
expect free_pages > 16000
reclaim drain_cpu domain=0
expect free_pages > 16350
W
dtmalloc run $TMP/w.wl
