# status 0
# With and without the ledger: the same tables, the same D output.
for ledger in '' --ledger; do
  dtmalloc run sim/examples/threads.wl $ledger --report vmstat-m \
    -n 'dtmalloc:::{printf("%d %s %d\n", timestamp, probefunc, args[3]);}' >"$TMP/out$ledger"
done 2>/dev/null
cmp "$TMP/out" "$TMP/out--ledger" && echo the same
