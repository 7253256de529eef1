# status 1
head -c 4000000 /dev/zero | dtmalloc run -
