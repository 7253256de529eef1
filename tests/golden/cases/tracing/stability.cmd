# status 0
# -v reports the stability of a program; with -e also of each clause.
# REQ: DSTRUCT-16
cat >$TMP/w.wl <<'W'
a = malloc 100 M_TEMP M_WAITOK
W
dtmalloc run $TMP/w.wl -qvn 'dtmalloc::temp:malloc {trace(stringof(args[0]->ks_shortdesc))}'
dtmalloc run $TMP/w.wl -evn 'dtmalloc::temp:malloc {trace(curthread)} BEGIN'
