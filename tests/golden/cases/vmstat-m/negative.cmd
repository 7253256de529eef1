# status 1
printf ' foo -1 2K 3 16\n' | dtmalloc import vmstat-m -
