# Two NUMA domains: a driver allocates near its device, and frees on the other side of the machine.
kernel cpus=4 domains=2 mem=1G     # CPUs 0 and 1 are of domain 0, CPUs 2 and 3 of domain 1
type M_NIC "nic" "rings and buffers of the card in domain 1"

ring = contigmalloc_domainset 64K fixed:1 M_NIC M_WAITOK|M_ZERO align=64K
queue = malloc_domainset 3000 pref:1 M_NIC M_WAITOK
expect domain(ring) == 1 && domain(queue) == 1

# Each CPU takes what it allocates from its own domain.
cpu 0
repeat 600 as i { x[i] = malloc 64 M_NIC M_WAITOK }
expect domain(x[0]) == 0

# A CPU of the other domain collects foreign items in a bucket of their own, and sends full ones home.
cpu 2
repeat 600 as i { free x[i] }
expect xdomain(malloc-64) == 508

free queue
free ring
a = malloc_domainset_aligned 300 16 mask:0x3 M_NIC M_NOWAIT
b = mallocarray_domainset 3 5 il M_NIC M_NOWAIT
c = contigmalloc 1 M_NIC M_NOWAIT low=1 high=2G align=8K boundary=1M
d = malloc_domainset_exec 1 empty M_NIC M_NOWAIT
