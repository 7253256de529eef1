# status 0
# More items than the limit: the limit is raised, and the workload runs.
cd "$TMP"
printf 'full: 256, 100, 120, 0, 500, 0, 0\n64 pcpu: 8, 0, 3, 5, 9, 0, 0\npcpu-8: 8, 0, 3, 5, 9, 0, 0\n' >z.txt
dtmalloc import vmstat-z z.txt -o z.wl || exit 10
cat z.wl
dtmalloc run z.wl --report vmstat-z=capture | grep 'full\|pcpu'
