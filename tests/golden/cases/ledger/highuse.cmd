# status 0
# K04. Exact HighUse over CPUs, as releases up to 5 printed it: 40 blocks, 10 KiB.
cat >"$TMP/w.wl" <<'W'
kernel cpus=4 mem=1G
type M_T "t"
repeat 4 as c {
  cpu c
  repeat 10 as i { x[c,i] = malloc 256 M_T M_WAITOK }
}
repeat 4 as c { repeat 10 as i { free x[c,i] } }
expect inuse(M_T) == 0
W
dtmalloc run "$TMP/w.wl" --report peaks
dtmalloc run "$TMP/w.wl" --report peaks=M_T --json
