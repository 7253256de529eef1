# status 3
printf 'type M_T "t"\na = malloc 70000 M_T M_WAITOK\nfree a @foo_detach+0x10;foo_free\nfree a @foo_detach+0x10;foo_free\nexpect 1 == 2\n' |
  dtmalloc run - -n 'dtmalloc::t: {@[probename] = count()}' | sed 's/0x[0-9a-f]*/ADDRESS/g'
printf 'type M_T "t"\na = malloc 70000 M_T M_WAITOK\nfree a\nfree a\n' | dtmalloc run - >/dev/null
