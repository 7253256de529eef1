# status 1
printf 'free x\nx = malloc 10 M_TEMP M_WAITOK\n' | dtmalloc run -
