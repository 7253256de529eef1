# status 2
dtmalloc run --reports=vmstat-m load.wl
