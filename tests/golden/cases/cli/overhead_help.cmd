# status 0
dtmalloc overhead --help
