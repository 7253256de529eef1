# status 1
printf 'wait 7000000000s\nwait 7000000000s\n' | dtmalloc run -
