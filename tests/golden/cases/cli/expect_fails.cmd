# status 4
printf 'a = malloc 10 M_TEMP M_WAITOK\nexpect requests(M_TEMP) == 2\nfree a\n' | dtmalloc run -
