# status 1
printf 'stream vm.kmem_zmax\n' | dtmalloc run -
