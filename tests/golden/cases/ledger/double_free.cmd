# status 3
# K25. The kernel's panic with zone and item; then, as ours, both sites.
cd "$TMP"
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G invariants ledger
type M_DF "df"
a = malloc 10 M_DF M_WAITOK @df_alloc
free a @df_first
free a @df_second;df_again
W
dtmalloc run w.wl --report leaks,findings 2>"$TMP/err"
status=$?
sed 's/zone 0x[0-9a-f]*/zone ADDRESS/' "$TMP/err" >&2
exit $status
