# status 3
# REQ: OPT-40, OPT-45
cd "$TMP"
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G memguard vm.memguard.desc="g g"
type M_G "g g"
a = malloc 100 M_G M_WAITOK
poke a+99 1
free a
poke a 1 @foo_intr+0x8
W
dtmalloc run w.wl
