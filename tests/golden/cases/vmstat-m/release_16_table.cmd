# status 1
printf 'a = malloc 100 M_TEMP M_WAITOK\n' | dtmalloc run - | dtmalloc import vmstat-m -
