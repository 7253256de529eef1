# status 1
try() {
  printf "$1" | dtmalloc run -
}
try 'repeat 3 {\n  a = malloc 1 M_TEMP M_WAITOK\n\n'
try 'wait 5\n'
try 'history M_TEMP allocs=1 allocs=2\n'
try 'history M_TEMP sizes=16 sizes=32\n'
try 'thread "a" cpu=1 cpu=2 { }\n'
try '\357\273\277a = malloc 1 M_TEMP M_WAITOK\n'
