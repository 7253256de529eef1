# status 1
# REQ: OPT-03, OPT-16
for line in 'kernel kasan' 'kernel vm.kmem_zmx=3' 'kernel debug.malloc.numzones=2' 'kernel config=GENERIC-KASAN' \
  'sysctl vm.kmem_zmx' 'sysctl vm.kmem_zmx=3'; do
  printf '%s\n' "$line" | dtmalloc run - 2>&1
done
printf 'a = malloc 16 M_TEMP M_WAITOK\npoke a+1T 3\n' | dtmalloc run -
