# status 0
# K12; REQ: MEMORY-01. Types are flat, and memory is used: it is idle in UMA.
cat >"$TMP/w.wl" <<'E'
kernel cpus=2 mem=512M
type M_A "a"
zone Z "tcpcb" size=1000
repeat 1000 as i { x[i] = malloc 100 M_A M_WAITOK }
repeat 990 as i { free x[i] }
big = malloc 100K M_A M_WAITOK
c = contigmalloc 5000 M_A M_WAITOK
z = uma_zalloc Z M_WAITOK
E
cd "$TMP"
dtmalloc run w.wl --report memory
dtmalloc run w.wl --report memory --json
echo 'reclaim drain_cpu' >>w.wl
dtmalloc run w.wl --report memory | tail -1
