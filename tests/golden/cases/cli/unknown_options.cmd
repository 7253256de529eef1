# status 2
for arguments in --hlep '-n BEGIN' 'run x.wl --reprot y' 'list --tunabel 3' 'import --replay vmstat-m x' 'import --relase vmstat-z x' \
  'import vmstat x' 'run /dev/null --report vmstat-m,'; do
  dtmalloc $arguments
  echo "status $?" >&2
done
exit 2
