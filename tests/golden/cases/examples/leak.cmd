# status 0
dtmalloc run sim/examples/leak.wl -q -n 'dtmalloc::leaky: {@[probename] = count()}'
