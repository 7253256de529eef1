# status 1
dtmalloc run sim/examples/leak.wl >/dev/full
