# status 3
cd "$TMP"
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_T "t"
a = malloc 100 M_T M_WAITOK
free a+1M
W
dtmalloc run w.wl --ledger --report types
