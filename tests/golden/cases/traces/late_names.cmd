# status 0
# Reports of a replay may name what the trace names after its head: blocks, and types. What is
# wrong whatever the trace holds is refused before the run; an unknown type is said when it is over.
cat >"$TMP/t.wl" <<'W'
kernel cpus=1 mem=1G
a = malloc 64 M_TEMP M_WAITOK
b = malloc 100 M_TEMP M_WAITOK @early
free b @drop
type M_LATE "late"
x[3] = malloc 200 M_LATE M_WAITOK @here
W
dtmalloc record "$TMP/t.wl" --binary -o "$TMP/t.trace"
reports=history=b,history=x[3],history=c,leaks=M_LATE,peaks=late,waste=M_LATE
for trace in t.wl t.trace; do dtmalloc replay "$TMP/$trace" --report "$reports" >"$TMP/$trace.out"; echo "status $?" >&2; done
cat "$TMP/t.wl.out"
cmp "$TMP/t.wl.out" "$TMP/t.trace.out"
for report in 'history=b[' 'history=x[i]' history=9 'leaks=lat,history=a' peaks=nothing; do
  dtmalloc replay "$TMP/t.trace" --report "$report" | head -1
  dtmalloc replay "$TMP/t.trace" --report "$report" >"$TMP/out" 2>&1; echo "$report: status $?" >&2
done
exit 0
