# status 0
sed 's/2206779846/     1846/; s/ 4173986/    1986/' tests/golden/cases/vmstat-m/01.txt >"$TMP/capture.txt"
dtmalloc import vmstat-m "$TMP/capture.txt" --replay-history -o "$TMP/live.wl" 2>/dev/null
grep -c '^history' "$TMP/live.wl"
dtmalloc run "$TMP/live.wl" --report vmstat-m=capture
