# status 0
dtmalloc run sim/examples/numa.wl -n 'dtmalloc::nic: {@[probename, cpu, arg3, (int)arg4] = count()}' --report vmstat-m
