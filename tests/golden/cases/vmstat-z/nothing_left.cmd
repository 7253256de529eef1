# status 1
printf 'temp 12 2K 36 16,32\n' | dtmalloc import vmstat-z -
