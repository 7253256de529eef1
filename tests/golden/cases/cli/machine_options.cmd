# status 2
cd "$TMP"
echo 'a = malloc 100 M_TEMP M_WAITOK' >w.wl
for option in '--release 13' '--mem 0' '--mem 4k' '--seed -1' '--seed 4K' '--cpus 0' '--cpus many'; do
  dtmalloc run w.wl $option
  echo "status $?" >&2
done
for line in release=13 cpus=0 cpus=2K seed=1K classes=32,16 mem=1K cost=9223372036854775808ns; do
  echo "kernel $line" >k.wl
  dtmalloc run k.wl
  echo "status $?" >&2
done
dtmalloc list --release 99
