# status 1
# REQ: OVERHEAD-10. What cannot be measured is refused as run refuses it, and leaves no file.
cd "$TMP"
printf 'type M_A "a"\nrepeat 3 { a = malloc 16 M_A M_WAITOK\nfree a\n}\n' >w.wl
echo 'dtmalloc::a:malloc {trace(arg3}' >bad.d
for line in 'w.wl -q' 'w.wl --seconds 0' 'w.wl --secnds 3' 'w.wl --clock real' 'w.wl -v' 'w.wl -x nosuch=1 -n BEGIN' \
  'w.wl -s bad.d' 'w.wl -s none.d' 'w.wl -n dtmalloc::b:malloc' 'w.wl -i 99999' 'w.wl -b 8 -n dtmalloc:::malloc' \
  'w.wl -n dtmalloc:::malloc{breakpoint()}' 'none.wl' '- -s -' 'w.wl --release 15'; do
  dtmalloc overhead $line -o out </dev/null
  echo "$line: status $?" >&2
done
printf 'type M_A "a"\na = malloc 70000 M_A M_WAITOK\nfree a\nfree a\n' | dtmalloc overhead - -o out
echo "status $?" >&2
printf 'type M_A "a"\na = malloc 16 M_A M_WAITOK\nfree b\n' | dtmalloc overhead - -o out
echo "status $?" >&2
# What one pass leaves behind is too much for a second one: then one is what is measured.
printf 'zone Z "z" size=64 limit=4\na = uma_zalloc Z M_WAITOK\n' >one.wl
dtmalloc overhead one.wl -o one.out
echo "status $?" >&2
rm one.wl one.out
echo 'type M_A "a"' | dtmalloc overhead - -o out
s=$?
ls
exit $s
