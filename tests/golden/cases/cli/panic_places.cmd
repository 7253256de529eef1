# status 3
# A panic says which statement of which thread it was; a deadlock where each sleeper stands.
cd "$TMP"
cat >panic.wl <<'E'
type M_A "a"
thread "worker" cpu=1 {
  wait 5ms
  a = malloc 100 M_A M_WAITOK
  critical {
    b = malloc 100 M_A M_WAITOK
  }
}
wait 1ms
join
E
dtmalloc run panic.wl --invariants --report types
echo "status $?" >&2
cat >sleepers.wl <<'E'
kernel cpus=2 mem=1M
zone Z "tight" size=64 limit=1
type M_A "a"
thread "one" cpu=0 {
  repeat 300 as i { x[i] = malloc 65536 M_A M_WAITOK }
}
thread "two" cpu=1 {
  a = uma_zalloc Z M_WAITOK
  b = uma_zalloc Z M_WAITOK @foo_attach
}
join
E
dtmalloc run sleepers.wl --report types
