# status 1
printf 'malloc-384: 384, 0, 1, 0, 1, 0, 0\n' >"$TMP/z.txt"
cd "$TMP"
dtmalloc import vmstat-z z.txt --release 16 && dtmalloc import vmstat-z z.txt --release 12
