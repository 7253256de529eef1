# a comment
kernel release=14 cpus=2 mem=2G seed=7 cost=100ns invariants
type M_FOO_BAR "foo bar" "FooBar \"subsystem\""
history M_FOO_BAR allocs=1000 memalloced=128000 frees=1000 memfreed=128000 sizes=128,256
cpu 1                       # what follows runs on CPU 1
a = malloc 100 M_TEMP M_WAITOK
b = malloc 128 M_FOO_BAR M_NOWAIT|M_ZERO @foo_attach+0x1c
a = realloc a 300 M_TEMP M_WAITOK
c = mallocarray 8 64 M_TEMP M_WAITOK @outer;inner
d = malloc_aligned 100 64 M_TEMP M_WAITOK
e = contigmalloc 5000 M_TEMP M_WAITOK
f = malloc_exec 4K M_TEMP M_WAITOK
g = reallocf b 1 M_FOO_BAR M_NOWAIT
free a
free g M_TEMP
free c+8
zfree d
contigfree e
repeat 1000 as i {
  x[i] = malloc uniform(16,4096) M_TEMP M_WAITOK
}
repeat 10 as i { repeat 3 as j { y[i,j] = malloc 16+i*j M_TEMP M_WAITOK } }
repeat 1000 as i { free x[i] }
wait 5ms
thread "worker" cpu=1 execname="nginx" pid=712 {
  z = malloc 64 M_TEMP M_WAITOK
  free z
}
join
unload M_FOO_BAR
load M_FOO_BAR
critical { k = malloc 64 M_TEMP M_NOWAIT }
interrupt {
  nosleep { free k }
}
expect inuse(M_TEMP) == 2 && !(size(x[3]) > 10) || fails(malloc-64) != 0 && free_pages > 3
