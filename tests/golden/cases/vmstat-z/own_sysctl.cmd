# status 0
# A dump of a machine of release 16 is one of release 16; slabs as in the model are one line.
cd "$TMP"
printf 'zone Z_P "p" size=8 flags=NOFREE|PCPU\na = malloc 100 M_TEMP M_WAITOK\n' >w.wl
dtmalloc run w.wl --report sysctl=vm.uma >uma.txt || exit 10
dtmalloc import vmstat-z uma.txt -o again.wl 2>&1 || exit 11
grep '^kernel\|^zone' again.wl
dtmalloc run again.wl || exit 12
