# status 0
# S14. The module in the description: of kernel there are all three functions; the module that has none matches nothing.
# A stack deeper than the default of 20 frames is whole with stackframes=100.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_A "a"
thread "nginx" pid=3 execname="nginx" {
  a = malloc 100 M_A M_WAITOK @f1;f2;f3;f4;f5;f6;f7;f8;f9;f10;f11;f12;f13;f14;f15;f16;f17;f18;f19;f20;f21;f22;f23;f24
  a = realloc a 200 M_A M_WAITOK @g1
}
thread "cron" pid=4 execname="cron" { c = contigmalloc 5000 M_A M_WAITOK @h1 }
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 14.d
sed 's/fbt:kernel:/fbt:if_em:/g' 14.d >$TMP/other.d
cd $TMP
dtmalloc run w.wl -s other.d
echo status $?
