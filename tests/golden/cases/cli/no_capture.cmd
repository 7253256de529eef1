# status 1
printf '' | dtmalloc run - --report vmstat-m=capture
