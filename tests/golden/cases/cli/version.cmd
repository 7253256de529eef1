# status 0
dtmalloc --version | sed 's/[0-9][0-9.]*$/VERSION/'
