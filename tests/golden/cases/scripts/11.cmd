# status 0
# S11. A balance over five seconds, then exit(0): what comes later does not count. A predicate that is never true is
# no error: the script is quiet, so no word is said; without quiet a note names the clause that never ran.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_AB "abac"
repeat 7 as i { x[i] = malloc 100 M_AB M_WAITOK }
repeat 3 as i { free x[i] }
wait 6s
late = malloc 100 M_AB M_WAITOK
W
cat >$TMP/other.wl <<'W'
kernel cpus=1
type M_AB "abac"
thread "x" execname="nginx" pid=9 { a = malloc 100 M_AB M_WAITOK
  free a }
join
wait 6s
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 11.d
echo status $?
dtmalloc run $TMP/other.wl -s 11.d
echo status $?
sed '/quiet/d' 11.d >$TMP/loud.d
cd $TMP
dtmalloc run other.wl -s loud.d
echo status $?
