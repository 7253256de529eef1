# status 0
# K30. What a report cannot find is refused with what may have been meant; a note is printed once.
cat >"$TMP/w.wl" <<'E'
kernel maxzones=4
type M_A "foo"
repeat 3 as i { buffer[i] = malloc 100 M_A M_WAITOK }
block = malloc 100 M_A M_WAITOK
E
cd "$TMP"
for report in 'history=bufer[1]' history=buffer 'history=buffer[i]' 'history=buffer[1,2]' 'history=block[1]' 'history=blok' \
  history=qqqqqqqqqq peaks=hello waste=hello leaks=by-stak leaks=helloooooooo ddb-multizone=helloooooooo; do
  dtmalloc run w.wl --report "$report"
  echo "$report: status $?" >&2
done
dtmalloc run w.wl --report 'history=buffer[7],peaks=M_A,waste=M_A,leaks=M_A' | head -2
