# status 1
# REQ: DTMALLOC-18, DTMALLOC-26. K11, K17: types that the consumer cannot see, and names that are no function's.
cat >$TMP/w.wl <<'W'
type M_HELLO "hello world"
a = malloc 100 M_HELLO M_WAITOK
free a
repeat 2 {
  expect inuse(M_HELLO) == 0
}
type M_LATE "late"
type M_HELLO2 "hello world"
b = malloc 100 M_LATE M_WAITOK
free b
W
dtmalloc run $TMP/w.wl -n 'dtmalloc:::malloc {@[probefunc] = count();}'
dtmalloc run $TMP/w.wl -n 'dtmalloc::hello*:malloc {@[probefunc] = count();}'
echo 'Quiet, and clauses that would not match them:' >&2
dtmalloc run -q $TMP/w.wl -n 'dtmalloc:::malloc {@[probefunc] = count();}'
dtmalloc run $TMP/w.wl -n 'dtmalloc::temp:malloc {@[probefunc] = count();} BEGIN {}'
for probe in 'dtmalloc::M_HELLO:malloc' 'dtmalloc::hello world:malloc' 'dtmalloc::M_HELO:malloc' \
  'dtmalloc::late:malloc' 'dtmalloc::M_LATE:free' 'dtmalloc::nowhere:free'; do
  dtmalloc run $TMP/w.wl -n "$probe {@ = count();}"
done
