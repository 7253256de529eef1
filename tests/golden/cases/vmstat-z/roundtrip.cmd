# status 0
# Name, size, limit and items in use come back.
rows() { grep -v '^ITEM' | grep -v 'Bucket:\|^UMA ' | sed -E 's/^(.*): *([0-9]+), *([0-9]+), *([0-9]+),.*/\1:\2:\3:\4/'; }
for n in 01 03 05 06 08 11; do
  f=tests/golden/cases/vmstat-z/$n.txt
  dtmalloc import vmstat-z $f 2>/dev/null >"$TMP/live.wl"
  dtmalloc run "$TMP/live.wl" --report vmstat-z=capture >"$TMP/got" || exit
  rows <$f | sort >"$TMP/a"
  rows <"$TMP/got" | sort >"$TMP/b"
  comm -23 "$TMP/a" "$TMP/b"
  echo "$n: $(wc -l <"$TMP/a") rows"
done
