# status 0
# Only what changed is told.
printf 'ITEM SIZE LIMIT USED FREE REQ FAIL SLEEP XDOMAIN\na: 8, 0, 5, 3, 10, 0, 0, 0\nb: 8, 0, 5, 3, 10, 0, 0, 0\nc: 8, 0, 5, 3, 10, 0, 0, 0\nITEM SIZE LIMIT USED FREE REQ FAIL SLEEP XDOMAIN\na: 8, 0, 5, 3, 10, 0, 0, 0\nb: 8, 0, 6, 2, 12, 0, 0, 0\nc: 8, 0, 5, 3, 10, 0, 0, 0\n' | dtmalloc import vmstat-z - 2>&1 >/dev/null
