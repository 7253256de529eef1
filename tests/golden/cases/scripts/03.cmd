# status 0
# S03. One packed histogram a type, of what the zones gave: 260 bytes are 384 on release 16 and 14 (the bin from
# 256) and 512 on 12 (the bin from 512). As pragma, and as -x.
cat >$TMP/w.wl <<'W'
type M_ONE "one size"
type M_MIX "mix"
repeat 10 as i { x[i] = malloc 260 M_ONE M_WAITOK }
repeat 8 as i { y[i] = malloc 16 M_MIX M_WAITOK }
repeat 4 as i { z[i] = malloc 1000 M_MIX M_WAITOK }
w = malloc 5000 M_MIX M_WAITOK
W
cd tests/golden/cases/scripts
for release in 16 14 12; do
  dtmalloc run $TMP/w.wl --release $release -s 03.d
done
dtmalloc run $TMP/w.wl -q -x aggpack -n 'dtmalloc:::malloc {@[probefunc] = quantize(args[3]);}'
dtmalloc run $TMP/w.wl -q --release 12 -n 'dtmalloc::one_size:malloc {@ = quantize(args[3]);}'
