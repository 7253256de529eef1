# status 2
dtmalloc run
