# status 1
cd "$TMP"
echo 'a = malloc 100 M_TEMP M_WAITOK' >w.wl
mkdir there
ln -s there/out link
dtmalloc run w.wl -o link
dtmalloc run w.wl -o link
ls -F there . | sed 's/@$/ is a link/'
cat there/out
ln -s w.wl same
dtmalloc run w.wl -o same
dtmalloc run - -o w.wl <w.wl
dtmalloc import vmstat-m w.wl -o ./w.wl
