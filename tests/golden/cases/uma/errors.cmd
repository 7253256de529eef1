# status 1
# One workload for each diagnostic about zones.
try() { printf "$1" | dtmalloc run -; }
try 'zone Z "z" size=64\na = uma_zalloc Y M_WAITOK\n'
try 'zone Z "z"\n'
try 'zone Z "z" size=0\n'
try 'zone Z "z" size=64 align=48\n'
try 'zone Z "z" size=64 flag=NOFREE\n'
try 'zone Z "z" size=64 flags=NOFRE\n'
try 'zone Z "z" size=64 flags=SMR\n'
try 'zone Z "z" size=4097 flags=PCPU\n'
try 'zone Z "z" size=64\nzone Z "y" size=64\n'
try 'repeat 2 { zone Z "z" size=64\n }\n'
try 'reclaim trimm\n'
try 'reclaim drain zone="malloc-46"\n'
try 'reclaim drain domain=1\n'
try 'critical { reclaim drain }\n'
try 'zone Z "z" size=64\nzdestroy Z\na = uma_zalloc Z M_WAITOK\n'
try 'zone Z "z" size=64\na = uma_zalloc Z M_WAITOK\nfree a\n'
