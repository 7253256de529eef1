# status 3
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_MOD "a module"
a = malloc 100 M_MOD M_WAITOK @mod_load
unload M_MOD
free a
W
dtmalloc run "$TMP/w.wl" --report leaks
