# status 0
# K08. One block of 16 bytes: the kernel keeps its plural.
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_RACE "race"
a = malloc 10 M_RACE M_WAITOK @race_new
unload M_RACE
W
dtmalloc run "$TMP/w.wl" --report leaks
