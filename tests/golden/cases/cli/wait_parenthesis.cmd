# status 0
printf 'wait (5ms)\nwait ( 2us + 3us )\nwait 5000000s\nexpect inuse(M_TEMP) == 0\n' | dtmalloc run -
