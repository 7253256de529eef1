# status 2
# REQ: CLI-11. An option that would do nothing is refused.
cd "$TMP"
printf 'type M_T "t"\na = malloc 10 M_T M_WAITOK\n' >w.wl
echo 'BEGIN {exit(0);}' >s.d
for line in 'run w.wl -q' 'run w.wl -x bufsize=4k' 'run w.wl --json --xml' 'run w.wl --json --libxo=xml' \
  'run w.wl --libxo=text' 'run w.wl --libxo=json --json --report types' \
  'run - -s -' 'run w.wl -s - -s -' 'run w.wl --report malloc-stats-stream=-' \
  'list w.wl --ledger' 'list --seed 3' 'list --clock real' 'import vmstat-z none --replay-history' \
  'run w.wl --domains 9' 'run w.wl --domains 2 --report sysctl=vm.ndomains'; do
  dtmalloc $line <s.d
  echo "$line: status $?" >&2
done
dtmalloc run w.wl -o ''
echo "status $?" >&2
dtmalloc run w.wl -o - --report types
dtmalloc run w.wl -s - <s.d
ls
dtmalloc run w.wl --report vmstat-mmmmmmmmmm
