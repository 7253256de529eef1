# status 1
# REQ: WL-26
printf 'repeat 3 as i {\n  a[i] = malloc 100 + 10/(2-i) M_TEMP M_WAITOK\n}\n' |
  dtmalloc run - --report vmstat-m -n 'dtmalloc:::malloc { @[args[3]] = count(); } END { printf("end\n"); }'
