# status 0
# REQ: OPT-32. The stack of @outer;inner, and the run goes on.
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G redzone
type M_RZ "rz"
a = malloc 16 M_RZ M_WAITOK @foo_ioctl+0x40;foo_attach+0x1c
poke a+16 0
free a @foo_detach+0x2
sysctl vm.redzone
W
dtmalloc run "$TMP/w.wl" -q -n 'dtmalloc::rz:malloc {printf("%d %d\n", arg3, args[4]);}' 2>&1
