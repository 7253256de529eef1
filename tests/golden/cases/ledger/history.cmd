# status 0
cat >"$TMP/w.wl" <<'W'
kernel cpus=2 mem=1G
type M_T "t"
type M_U "u"
n = malloc 70000 M_T M_NOWAIT
repeat 3 as i {
  x[i] = malloc 100 M_T M_WAITOK @first
  free x[i] @first_done
}
thread "worker" cpu=1 execname="nginx" pid=712 tid=100099 {
  w = malloc 20 M_U M_WAITOK
}
join
cpu 0
y = malloc 70 M_U M_WAITOK
y = realloc y 80 M_U M_WAITOK
W
dtmalloc run "$TMP/w.wl" --report 'history=x[0],history=y,history=w,history=0xfffff80000000001'
dtmalloc run "$TMP/w.wl" --report 'history=x[2]' --json | cut -c 1-200
