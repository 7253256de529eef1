# status 1
echo 'a = malloc 100 M_TEMP M_WAITOK' | dtmalloc run - -n BEGIN -x bufsiz=4k
