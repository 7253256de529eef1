# status 1
printf 'block = malloc 10 M_TEMP M_WAITOK\nfree blok\n' | dtmalloc run -
