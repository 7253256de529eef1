# status 0
f=tests/golden/cases/vmstat-m/05.txt
norm() { sed -E 's/[[:space:]]+$//; s/ +- +/ /; s/[[:space:]]+/ /g; s/^ //' | grep -vE '^(Type|$)'; }
dtmalloc import vmstat-m $f -o "$TMP/live.wl"
dtmalloc import vmstat-m $f >"$TMP/second.wl" 2>/dev/null
cmp "$TMP/live.wl" "$TMP/second.wl"
dtmalloc run "$TMP/live.wl" --report vmstat-m=capture >"$TMP/got"
norm <"$TMP/got" >"$TMP/a"
norm <$f | diff - "$TMP/a" && cat "$TMP/got"
