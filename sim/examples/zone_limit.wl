# A zone with a limit between a fast and a slow thread: the fast one waits its turn. Afterwards
# what lies in caches goes back to the machine.
kernel cpus=2 mem=256M seed=5
type M_REQ "req" "requests"
zone JOBS "jobs" size=512 limit=8 warning="jobs limit reached, slow consumer"

thread "producer" cpu=0 {
  repeat 40 as i {
    req[i] = malloc 2048 M_REQ M_WAITOK
    job[i] = uma_zalloc JOBS M_WAITOK
  }
}
thread "consumer" cpu=1 {
  repeat 40 as i {
    wait 1ms
    uma_zfree JOBS job[i]
    free req[i]
  }
}
join
expect inuse(M_REQ) == 0 && sleeps("jobs") > 20 && fails("jobs") == 0
zdestroy JOBS
reclaim drain_cpu
