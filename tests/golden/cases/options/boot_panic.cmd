# status 3
# REQ: OPT-08
printf 'kernel vm.kmem_size_scale=1000000000\n' | dtmalloc run -
