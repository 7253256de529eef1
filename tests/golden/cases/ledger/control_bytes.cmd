# status 0
# No byte of a name breaks a table.
printf 'type M_A "a\\nb\\x1b[1m"\ntype M_B "c\\td"\nq = malloc 10 M_A M_WAITOK @f\nr = malloc 10 M_B M_WAITOK @g\n' >"$TMP/w.wl"
cd "$TMP"
dtmalloc run w.wl --report types,leaks,peaks,history=q
dtmalloc run w.wl --report types --xml
echo 'free q M_B' >>w.wl
dtmalloc run w.wl --report findings
