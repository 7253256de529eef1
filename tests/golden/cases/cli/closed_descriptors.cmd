# status 1
cd "$TMP"
printf 'a = malloc 100 M_TEMP M_WAITOK\nexpect inuse(M_TEMP) == 7\n' >w.wl
dtmalloc run w.wl -o out 2>&-
echo "status $?"
cat out
dtmalloc run w.wl -o out <&-
echo "status $?"
dtmalloc run w.wl >&-
