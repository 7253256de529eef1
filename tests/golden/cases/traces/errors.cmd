# status 0
# What is wrong in a trace, with its place.
try() { echo "$1:" >&2; printf "$2" | dtmalloc replay - --cpus 2; echo "status $?" >&2; }
try 'a mistake' 'a = malloc 10 M_TEMP M_WAITOK\na = malloc 10 M_TMEP M_WAITOK\n'
try 'a block' 'a = malloc 10 M_TEMP M_WAITOK\nrepeat 10 { free a }\n'
try 'never set' 'free a\na = malloc 10 M_TEMP M_WAITOK\n'
try 'a CPU' 'a = malloc 10 M_TEMP M_WAITOK cpu=2\n'
try 'a panic' 'a = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a @foo_detach+0x10\n'
try 'a version' 'DTMTRACE\2\0\0\0\0\0\0\0'
try 'cut' 'DTMTRACE\1\0\0\0\0\0\0\0\1\0\0\0'
printf 'a = malloc 10 M_TEMP M_WAITOK\nfree a\nfree a M_TEMP\n' | dtmalloc record - --binary >"$TMP/t"
printf 'free b\n' | dtmalloc record - ; echo "status $?" >&2
printf 'cpu 0\ncritical { a = malloc 10 M_TEMP M_NOWAIT }\n' | dtmalloc record - -o "$TMP/no"; echo "status $?" >&2
ls "$TMP" >&2
dtmalloc replay /nonexistent; echo "status $?" >&2
dtmalloc record --text --binary x; echo "status $?" >&2
cd "$TMP"
dtmalloc record .; echo "status $?" >&2
dtmalloc record t --cpus 8 -o no; echo "status $?" >&2
for command in run check; do dtmalloc $command t; echo "status $?" >&2; done
exit 0
