# status 1
dtmalloc run sim/examples/leak.wl -n BEGIN -x nosuch=1
