# status 1
try() {
  printf "$1" | dtmalloc run -
}
try 'kernel domains=9\n'
try 'kernel domains=8 mem=1M\n'
try 'a = malloc_domainset 100 fixd:1 M_TEMP M_WAITOK\n'
try 'a = malloc_domainset 100 fixed:8 M_TEMP M_WAITOK\n'
try 'a = malloc_domainset 100 mask:0x100 M_TEMP M_WAITOK\n'
try 'a = malloc_domainset 100 rr:1 M_TEMP M_WAITOK\n'
try 'a = malloc_domainset 100 M_TEMP M_WAITOK\n'
try 'a = contigmalloc 100 M_TEMP M_WAITOK hi=4G\n'
try 'a = contigmalloc 100 M_TEMP M_WAITOK low=1M low=2M\n'
try 'a = malloc 100 M_TEMP M_WAITOK low=1M\n'
