# status 5
# K01. A type's usage shrinks until it "reached zero and overflowed": three blocks of A are freed as B.
cat >"$TMP/w.wl" <<'W'
kernel release=14 cpus=1 mem=1G
type M_A "A"
type M_B "B"
repeat 3 as i { x[i] = malloc 128 M_A M_WAITOK @a_attach+0x10;a_alloc }
repeat 3 as i { free x[i] M_B @b_detach+0x42 }
expect inuse(M_A) == 3 && memuse(M_A) == 384
expect inuse(M_B) == -3 && memuse(M_B) == -384
W
dtmalloc run "$TMP/w.wl" --strict --report vmstat-m,leaks,waste,findings
