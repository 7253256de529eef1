# status 3
# S21. Entry and return, paired by a thread variable: time, request, address, what there was before, and the callers. Of
# nested functions the inner return prints. A mallocarray whose product overflows panics: no return, no line.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_A "a"
a = malloc 100 M_A M_WAITOK @one+0x1
b = mallocarray 8 64 M_A M_WAITOK @two+0x2
a = realloc a 5000 M_A M_WAITOK @three+0x3
free a @four+0x4
free b @four+0x4
o = mallocarray 0x4000000000000000 5 M_A M_NOWAIT @five+0x5
W
cp tests/golden/cases/scripts/21.d $TMP
cd $TMP
dtmalloc run w.wl -s 21.d
