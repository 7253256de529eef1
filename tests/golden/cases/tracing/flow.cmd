# status 0
# REQ: DTRACE-81. What nests, indents: a first malloc fills a bucket, which is itself allocated. Then two clauses for each probe.
cat >$TMP/w.wl <<'W'
kernel cpus=1
a = malloc 100 M_TEMP M_WAITOK
W
dtmalloc run $TMP/w.wl -F -n 'fbt::malloc:,fbt::uma_zalloc_arg:'
dtmalloc run $TMP/w.wl -q -F -n 'fbt::malloc: {printf("1\n")} fbt::malloc: {printf("2\n")}'
