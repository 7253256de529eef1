# status 1
dtmalloc run sim/examples/leak.wl -s /nonexistent.d
