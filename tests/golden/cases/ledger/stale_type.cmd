# status 3
cd "$TMP"
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_MOD "a module"
a = malloc 100 M_MOD M_WAITOK @mod_load
unload M_MOD
free a
W
dtmalloc run w.wl --report leaks
