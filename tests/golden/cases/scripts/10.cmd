# status 0
# S10. One type, chosen by its object's address: takes and gives by stack. Their difference is what lives, 5 - 3, also
# when one aggregation adds and subtracts. Blocks of another type are in neither.
cat >$TMP/w.wl <<'W'
kernel cpus=1
repeat 5 as i { x[i] = malloc 64 M_TEMP M_WAITOK @open+0x10;grow+0x4 }
y = malloc 64 M_DEVBUF M_WAITOK @open+0x10;grow+0x4
repeat 3 as i { free x[i] @close+0x8 }
free y @close+0x8
expect inuse(M_TEMP) == 2
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 10.d
dtmalloc run $TMP/w.wl -q -n 'fbt::malloc:entry /arg1 == (uint64_t)&`M_TEMP/ {@live = sum(1);}
fbt::free:entry /arg1 == (uint64_t)&`M_TEMP/ {@live = sum(-1);}'
