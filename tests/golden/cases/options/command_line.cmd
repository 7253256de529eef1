# status 0
# REQ: OPT-01, OPT-03. The options of the command line.
wl='sysctl vm.kmem_zmax\nsysctl debug.malloc\nsysctl vm.redzone.panic\n'
printf "$wl" | dtmalloc run - --config GENERIC --redzone --make-failures --tunable vm.kmem_zmax=4096 \
  --tunable debug.malloc.numzones=4 --tunable debug.malloc.zone_offset=1 --tunable vm.redzone.panic=1 2>&1
dtmalloc list --invariants --memguard --maxzones 3 --tunable vm.memguard.desc=x 2>&1 >/dev/null
for bad in '--config GENERICS' '--config GENERIC-KASAN' '--maxzones 0' '--tunable vm.kmem_zmx=3' '--tunable vm.kmem_zmax' \
  '--tunable vm.kmem_zmax=x' '--tunable vm.redzone.panic=1'; do
  printf '' | dtmalloc run - $bad 2>&1
  echo "status $?"
done
