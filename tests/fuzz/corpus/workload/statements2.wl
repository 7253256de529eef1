kernel release=12 cpus=3 mem=1G seed=9 cost=2us clock=virtual kmem_zmax=5000 classes=16,32 capture=m2
type M_A "a \"b\" \\ \x01 é" "long"
type M_UMA "UMA"
history M_A allocs=3 sizes=16,32
free = malloc 16 M_A M_WAITOK
free free
x[0] = malloc 1-(2-3)-4*(5+6)%7 M_A M_NOWAIT|M_USE_RESERVE
repeat 10 as i {
  repeat uniform(1,2) {
    y[i,i*2] = malloc_aligned 100 (-i+64) M_A M_WAITOK @a;b;c
    wait i*1ms
  }
}
b = realloc y[1,2] choice(1,2,zipf(9),normal(100,10)) M_A M_WAITOK
free b+16 M_UMA @here
thread "w \x02" cpu=2 execname="e" pid=3 ppid=4 tid=5 uid=6 gid=7 {
}
expect (1 < 2) == 1 && (!(0 || 1) || -3 < -(-4)) && null(b) == 0 && fails("128 Bucket") == 0
