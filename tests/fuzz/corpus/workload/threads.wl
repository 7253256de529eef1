# Three threads hand blocks on: what one allocates another frees, on other CPUs.
kernel cpus=4 mem=1G seed=3
type M_MSG "msg" "messages between threads"

thread "reader" cpu=1 execname="netread" pid=101 {
  repeat 200 as i { msg[i] = malloc 300 M_MSG M_WAITOK }
}
thread "filter" cpu=2 execname="netfilter" pid=102 {
  repeat 200 as i { copy[i] = realloc msg[i] 600 M_MSG M_WAITOK }
}
thread "writer" cpu=3 execname="netwrite" pid=103 {
  repeat 200 as i {
    free copy[i]
    wait 10us
  }
}
join
expect inuse(M_MSG) == 0 && requests(M_MSG) == 400
