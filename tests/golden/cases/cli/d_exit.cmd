# status 7
printf 'type M_T "t"\nrepeat 5 { a = malloc 10 M_T M_WAITOK\nwait 1s\n}\n' |
  dtmalloc run - -n 'dtmalloc::t:malloc {@n = count();} dtmalloc::t:malloc /++i == 2/ {exit(7);}' --report vmstat-m
