kernel config=GENERIC invariants=0 redzone memguard make_failures maxzones=3 vm.memguard.desc="a b" debug.malloc.numzones=2
a = malloc 16 M_TEMP M_WAITOK @x;y
poke a+15 0x41
poke a-1 (-(-7)) @z
sysctl vm.memguard
sysctl debug.malloc.failure_rate=3
sysctl vm.memguard.desc="c d"
