# status 1
printf 'a = malloc 99999999999999999999 M_TEMP M_WAITOK\n' | dtmalloc run -
