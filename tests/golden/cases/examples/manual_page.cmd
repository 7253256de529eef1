# status 0
dtmalloc run sim/examples/dtrace_dtmalloc.wl -n 'dtmalloc:::malloc {@[stringof args[0]->ks_shortdesc] = count()}'
