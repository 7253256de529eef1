# status 0
dtmalloc run sim/examples/threads.wl -n 'dtmalloc::msg: {@[execname, pid, cpu, probename] = count()}' --report vmstat-m
