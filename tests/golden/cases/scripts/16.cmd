# status 0
# S16. Four exact probes: `matched 4 probes`. Takes and gives as the kernel calls: a realloc that moves calls malloc and
# free, reallocf calls realloc. At the end counts ascend. 10 + 2 + 1 mallocs; 6 + 2 + 1 frees; 2 + 1 reallocs.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_G "gem"
repeat 10 as i { x[i] = malloc 100 M_G M_WAITOK }
repeat 6 as i { free x[i] }
x[6] = realloc x[6] 5000 M_G M_WAITOK
x[7] = realloc x[7] 5000 M_G M_WAITOK
x[8] = reallocf x[8] 5000 M_G M_WAITOK
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 16.d
