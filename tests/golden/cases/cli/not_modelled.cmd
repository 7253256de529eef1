# status 1
printf 'sysctl vm.kmem_zmax\n' | dtmalloc run -
