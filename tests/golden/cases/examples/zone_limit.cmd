# status 0
dtmalloc run sim/examples/zone_limit.wl --report vmstat-m
