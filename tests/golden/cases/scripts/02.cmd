# status 0
# S02. A list each 2 simulated seconds: at most 5 rows, the largest counts; after clear() the keys stay with 0.
# Seven types, 1 to 7 calls in the first 2 s: the rows of 3 to 7 stay. Then only f (9 calls) and a (10, new again):
# a tie of the zeros keeps the larger keys. Two runs print the same bytes, dates included.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_A "a"
type M_B "b"
type M_C "c"
type M_D "d"
type M_E "e"
type M_F "f"
type M_G "g"
repeat 1 { x = malloc 16 M_A M_WAITOK }
repeat 2 { x = malloc 16 M_B M_WAITOK }
repeat 3 { x = malloc 16 M_C M_WAITOK }
repeat 4 { x = malloc 16 M_D M_WAITOK }
repeat 5 { x = malloc 16 M_E M_WAITOK }
repeat 6 { x = malloc 16 M_F M_WAITOK }
repeat 7 { x = malloc 16 M_G M_WAITOK }
wait 2500ms
repeat 9 { x = malloc 16 M_F M_WAITOK }
repeat 10 { x = malloc 16 M_A M_WAITOK }
wait 2s
wait 2s
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 02.d | tee $TMP/first
dtmalloc run $TMP/w.wl -s 02.d | cmp - $TMP/first
