# status 0
dtmalloc run sim/examples/dtrace_dtmalloc.wl
