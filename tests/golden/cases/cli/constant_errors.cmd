# status 1
# REQ: WL-22
try() {
  printf "$1" | dtmalloc run --cpus 2 - -n 'BEGIN { printf("never"); }'
}
try 'cpu 1\nrepeat 3 {\n  cpu 5\n}\n'
try 'thread "w" pid=7 cpu=2 { }\n'
try 'sysctl nosuch\n'
try 'sysctl vm.kmem_zmx\n'
try 'sysctl debug.malloc.failure_rate=3\n'
try 'sysctl vm.memguard.mapused\n'
try 'reclaim trim zone="malloc-17"\n'
try 'reclaim trim domain=3\n'
try 'zone MINE "my zone" size=64\nexpect fails(MIME) == 0\n'
try 'a = malloc 1 M_TEMP M_WAITOK\npoke a 0x141\n'
try 'wait -5ms\n'
try 'kernel domains=2\na = malloc_domainset 100 mask:0x6 M_TEMP M_WAITOK\n'
try 'a = malloc 100 + 10/(2-2) M_TEMP M_WAITOK\n'
try 'expect inuse(M_TEMP) = 1\n'
try 'zone Z "z" size=64 flags=FOO\n'
try 'zone Z "z" size=64 flags=PCPU,NOFREE\n'
