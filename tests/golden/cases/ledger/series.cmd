# status 0
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_T "a, b"
type M_U "u"
repeat 4 as i {
  x[i] = malloc 1000 M_T M_WAITOK
  wait 10ms
}
y = malloc 16 M_U M_WAITOK
free x[0]
wait 25ms
W
dtmalloc run "$TMP/w.wl" --report series=10ms
dtmalloc run "$TMP/w.wl" --report series=30ms --json
