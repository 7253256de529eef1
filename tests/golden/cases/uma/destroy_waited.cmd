# status 3
# With this seed w was woken, but has not run yet when its zone is destroyed.
printf 'kernel cpus=2 mem=1G seed=2\nzone Z "zz" size=64 limit=1\na = uma_zalloc Z M_WAITOK\nthread "w" cpu=1 { b = uma_zalloc Z M_WAITOK\n}\nwait 1ms\numa_zfree Z a\nzdestroy Z\njoin\n' | dtmalloc run -
