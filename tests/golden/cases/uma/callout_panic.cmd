# status 3
# REQ: SMP-20. The page daemon runs while a thread ends, and finds the item that the thread wrote to.
cd "$TMP"
cat >"$TMP/w.wl" <<'E'
kernel cpus=2 mem=512K invariants
type M_F "f"
repeat 40 as i { x[i] = malloc 4096 M_F M_NOWAIT }
thread "t" cpu=1 { wait 1ms
  free x[3]
  poke x[3] 0x41
}
b = malloc 360000 M_F M_WAITOK
E
dtmalloc run w.wl --report vmstat-m
