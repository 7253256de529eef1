# status 3
# All wait, and a full reclaim freed nothing: every sleeper is named.
printf 'kernel cpus=2 mem=2M\ntype M_A "a"\ntype M_B "b"\nthread "one" cpu=0 { repeat 1000 as i { x[i] = malloc 65536 M_A M_WAITOK } }\nthread "two" cpu=1 { repeat 1000 as j { y[j] = malloc 4096 M_B M_WAITOK|M_ZERO } }\njoin\n' | dtmalloc run -
