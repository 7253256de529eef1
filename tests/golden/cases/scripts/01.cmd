# status 0
# S01. Malloc and free of each type: two probes for each of the 8 types (5 of the kernel, 3 here). Types that
# did nothing have no row; rows ascend by count, equal ones by name; blanks in names print as `_`.
cat >$TMP/w.wl <<'W'
kernel cpus=2
type M_CAM "CAM I/O Scheduler"
type M_PMC "pmc"
type M_IDLE "idle"
repeat 3 as i { x[i] = malloc 100 M_CAM M_WAITOK }
cpu 1
free x[0]
free x[1]
repeat 5 { a = malloc 64 M_PMC M_WAITOK
  free a }
b = realloc x[2] 300 M_CAM M_WAITOK       # a malloc and a free
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 01.d
