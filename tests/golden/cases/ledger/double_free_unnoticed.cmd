# status 0
# A kernel without INVARIANTS counts the second free and hands the block out twice.
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_DF "df"
a = malloc 10 M_DF M_WAITOK
free a
free a
b = malloc 10 M_DF M_WAITOK
c = malloc 10 M_DF M_WAITOK
expect inuse(M_DF) == 1
W
dtmalloc run "$TMP/w.wl" --report findings
