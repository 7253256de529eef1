# status 1
# K15. No D library of the host is read: constants and types are built in, and `-x nolibs` changes nothing of them.
# A library that is given and fails to compile is named, with the line.
echo 'a = malloc 100 M_TEMP M_WAITOK' >$TMP/w.wl
mkdir $TMP/lib
printf '/* as io.d */\nstruct bio;\ninline int first = 7;\ntranslator int64_t < struct bio *b > { x = b->bio_flags; };\n' >$TMP/lib/io.d
cd $TMP
dtmalloc run w.wl -q -n 'BEGIN {printf("%d %d %d\n", EINVAL, SIGKILL, sizeof (hrtime_t));}'
dtmalloc run w.wl -q -x nolibs -n 'BEGIN {printf("%d\n", sizeof (struct malloc_type_stats));}'
cat >lib/io.d <<'D'
/* in the manner of io.d */
struct bio;
struct bufinfo { int b_flags; };
translator struct bufinfo < struct bio *B > {
	b_flags = B->bio_flags;
};
D
dtmalloc dtrace -L lib -qn 'BEGIN {exit(0);}'
