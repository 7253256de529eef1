# status 2
dtmalloc rnu load.wl
