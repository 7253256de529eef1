# status 5
dtmalloc run sim/examples/leak.wl --strict
