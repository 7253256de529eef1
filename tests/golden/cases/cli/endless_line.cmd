# status 1
head -c 100000000 /dev/zero | tr '\0' x | dtmalloc run -
