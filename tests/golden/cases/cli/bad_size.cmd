# status 2
dtmalloc run load.wl --mem 3Q
