# status 0
# REQ: SYSCTL-16
cd "$TMP"
printf 'kernel release=16 cpus=1 mem=1G\ntype M_T "t"\na = malloc 16 M_T M_WAITOK\n' >w.wl
dtmalloc run w.wl --report 'sysctl=vm.uma.malloc_16,sysctl=vm.malloc.zone_count,sysctl=-o vm.malloc'
echo '--- options'
dtmalloc run w.wl --report 'sysctl=-d vm.uma.malloc_16.stats,sysctl=-o kern.malloc_stats,sysctl=kern.malloc_stats'
for name in vm.uma.malloc_17.size vm.uma.malloc kern.malloc_stat -d '-x vm'; do
  dtmalloc run w.wl --report "sysctl=$name"
  echo "status $?" >&2
done
dtmalloc run w.wl --report sysctl
echo "status $?" >&2
dtmalloc run w.wl --report sysctl=vm.malloc.zone_count --json
echo "status $?" >&2
