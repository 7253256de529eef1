# status 0
# S06. A linear histogram: the bin of the 16-byte blocks is exact, what is below the base (nothing can be) and from
# 2048 on has rows of its own. The script itself, and the tuning of an inline count: 16 to 4096 by 8.
cat >$TMP/w.wl <<'W'
repeat 100 { x = malloc 10 M_TEMP M_WAITOK }
repeat 40 { x = malloc 64 M_TEMP M_WAITOK }
repeat 20 { x = malloc 128 M_TEMP M_WAITOK }
repeat 30 { x = malloc 2048 M_TEMP M_WAITOK }
repeat 10 { x = malloc 70000 M_TEMP M_WAITOK }
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 06.d
dtmalloc run $TMP/w.wl -q -n 'dtmalloc::temp:malloc {@ = lquantize(args[3], 16, 4096, 8);}' | grep -v '|  *0 *$'
dtmalloc run $TMP/w.wl -q -n 'dtmalloc::temp:malloc {@ = lquantize(args[3], 64, 2048, 64);}' | sed 6q
