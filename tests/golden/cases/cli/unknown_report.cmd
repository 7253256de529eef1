# status 2
printf '' | dtmalloc run - --report vmstat-mm
