# status 0
# S04. Every block of one type by address: eight of 128 bytes leak, so there are eight more `+` than `-`, and the
# addresses of the rest match. A realloc that moves is a new block; one that fits is none. No dynamic variable is dropped.
cat >$TMP/w.wl <<'W'
kernel cpus=2 mem=1G
type M_BUS "bus_sc"
type M_OTHER "other"
repeat 8 as i { leak[i] = malloc 100 M_BUS M_WAITOK @bus_attach+0x31 }
repeat 3 as i { x[i] = malloc 2000 M_BUS M_WAITOK @bus_open+0x12
  y[i] = malloc 2000 M_OTHER M_WAITOK @bus_open+0x44 }
cpu 1
repeat 3 as i { free x[i] @bus_close+0x9
  free y[i] @bus_close+0x22 }
r = malloc 60 M_BUS M_WAITOK @bus_open+0x66
r = realloc r 61 M_BUS M_WAITOK @bus_ioctl+0x10
r = realloc r 3000 M_BUS M_WAITOK @bus_ioctl+0x58
free r @bus_close+0x30
c = contigmalloc 5000 M_BUS M_WAITOK @bus_dma+0x7
free c @bus_close+0x40
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 04.d bus_sc | tee $TMP/out
grep -c '^+' $TMP/out
grep -c '^-' $TMP/out
# the addresses that stay
sed -n 's/^[+] //p' $TMP/out | sort >$TMP/plus
sed -n 's/^- //p' $TMP/out | sort | comm -23 $TMP/plus - 
dtmalloc run $TMP/w.wl --report leaks=M_BUS
