# status 1
dtmalloc run tests
