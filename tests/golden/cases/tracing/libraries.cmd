# status 0
# REQ: DSTRUCT-21. The example of sim/README.md: a library with an inline, an array of values and a translator.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_FOO "foo"
a = malloc 64 M_FOO M_WAITOK
W
mkdir $TMP/lib
cat >$TMP/lib/info.d <<'D'
inline int PAGE = 4096;
inline int twice[int n] = n * 2;
typedef struct type_info {string name; uint64_t size;} type_info_t;
translator type_info_t < struct malloc_type_stats *S > {
        name = "one CPU's";
        size = S->mts_memalloced;
};
D
cat >$TMP/lib/more.d <<'D'
#pragma D depends_on library info.d
inline int FOUR = twice[PAGE] / 2048;
D
cat >$TMP/lib/absent.d <<'D'
#pragma D depends_on provider io
inline int absent = 1;
D
dtmalloc run $TMP/w.wl -L $TMP/lib -qn 'dtmalloc:::malloc {printf("%s %d, %d\n", xlate <type_info_t> (args[2]).name, xlate <type_info_t> (args[2]).size, FOUR)}'
