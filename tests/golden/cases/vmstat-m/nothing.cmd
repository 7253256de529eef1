# status 1
cd "$TMP"
printf 'nonsense\n' >t.txt
dtmalloc import vmstat-m t.txt -o t.wl
s=$?
ls
exit $s
