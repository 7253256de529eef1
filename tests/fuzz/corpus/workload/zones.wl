kernel cpus=2
zone Z "z" size=256 align=64 limit=10 flags=NOFREE|NODUMP warning="full"
repeat 3 as i { x[i] = uma_zalloc Z M_NOWAIT|M_ZERO @a;b }
uma_zfree Z x[1]
reclaim drain_cpu zone="malloc-64" domain=0
expect sleeps("z") == 0 && fails(malloc-16) == 0
zdestroy Z
