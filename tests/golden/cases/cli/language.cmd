# status 0
dtmalloc run - <<"W"
kernel release=16 cpus=4 mem=2G seed=7         # any KernelConfig key (mem: physical memory); options: invariants redzone ..
type M_TEMP "temp" "misc temporary data buffers"
type M_FOO_BAR "foo bar" "FooBar subsystem"    # symbol, short description, optional long one
history M_FOO_BAR allocs=1000 memalloced=128000 frees=1000 memfreed=128000 sizes=128   # what happened before the run:
cpu 1                                           # what follows runs on CPU 1 (default 0)
a = malloc 100 M_TEMP M_WAITOK                  # a names the block; flags joined by |
b = malloc 128 M_FOO_BAR M_NOWAIT|M_ZERO @foo_attach+0x1c   # @site: the simulated call site, @outer;inner for a stack
a = realloc a 300 M_TEMP M_WAITOK               # also reallocf
c = mallocarray 8 64 M_TEMP M_WAITOK
d = malloc_aligned 100 64 M_TEMP M_WAITOK
e = contigmalloc 5000 M_TEMP M_WAITOK           # also malloc_exec, malloc_domainset DOMAIN ...
free a                                          # under the type it was allocated with
free b M_TEMP                                   # under another type: what a buggy kernel does
zfree c
repeat 1000 as i {                              # i runs from 0 to 999; blocks may be indexed: x[i], x[i,j]
  x[i] = malloc uniform(16,4096) M_TEMP M_WAITOK
}
repeat 1000 as i { free x[i] }
wait 5ms                                        # virtual time
thread "worker" cpu=2 execname="nginx" pid=712 {  # runs beside the main thread; the schedule is the seed's
  y = malloc 64 M_TEMP M_WAITOK
  free y
}
join                                            # all threads done
unload M_FOO_BAR                                # malloc_uninit: prints the leak warning if there is one
load M_FOO_BAR                                  # malloc_init again
critical { z = malloc 64 M_TEMP M_NOWAIT }      # also interrupt { } and nosleep { }: the contexts of malloc(9)
expect inuse(M_TEMP) == 2       # inuse memuse requests size null(NAME) ...: a failed one ends with status 4
W
