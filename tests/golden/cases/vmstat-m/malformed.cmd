# status 0
cd "$TMP"
printf 'Type InUse MemUse Requests  Size(s)\n  good 1 1K 3 16\nnonsense\n  cut 5\n  bad 3 1K 3 17\n  odd 24 1K 24 4096\n' >t.txt
dtmalloc import vmstat-m t.txt -o t.wl && dtmalloc run t.wl --report vmstat-m=capture
