# status 3
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_T "t"
a = malloc 100 M_T M_WAITOK
free a+1M
W
dtmalloc run "$TMP/w.wl" --ledger --report types
