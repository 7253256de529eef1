# status 3
cd "$TMP"
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G invariants
type M_T "t"
a = malloc 100 M_T M_WAITOK @alloc
free a+8 @release
W
dtmalloc run w.wl --ledger --report leaks 2>"$TMP/err"
status=$?
sed 's/zone 0x[0-9a-f]*/zone ADDRESS/' "$TMP/err" >&2
exit $status
