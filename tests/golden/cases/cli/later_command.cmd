# status 2
dtmalloc diff a b
