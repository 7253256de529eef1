# status 0
# show multizone_matches: the types that share the subzone of a type.
cd "$TMP"
cat >w.wl <<'W'
kernel release=16 cpus=1 mem=1G maxzones=2
type M_A "a"
type M_B "b"
type M_C "c"
type M_D "d"
a = malloc 16 M_A M_WAITOK
W
for type in M_A b c 0xffffffff81000000; do
  echo "--- $type"
  dtmalloc run w.wl --report ddb-multizone=$type | grep -x '[a-d]'
done
for type in M_AA 0x10 0xffffffff81000008; do
  dtmalloc run w.wl --report ddb-multizone=$type
  echo "status $?" >&2
done
sed -i 's/ maxzones=2//' w.wl
dtmalloc run w.wl --report ddb-multizone=M_A
echo "status $?" >&2
