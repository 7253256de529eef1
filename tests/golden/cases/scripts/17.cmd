# status 0
# S17, K23. A log-linear histogram, printed and emptied each second: the second print shows the second second alone.
# 10 blocks of 16 and 5 of 1024, then 3 of 4096, then nothing: zeros.
# The bins are 5 wide up to 100, then 50, then 500: 16 is in that from 15, 1024 in that from 1000, 4096 in that from 4000.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_A "a"
repeat 10 { x = malloc 16 M_A M_WAITOK }
repeat 5 { x = malloc 1000 M_A M_WAITOK }
wait 1s
repeat 3 { x = malloc 4000 M_A M_WAITOK }
wait 2s
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 17.d
