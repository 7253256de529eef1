# status 1
# Strings of 4 GiB: variables that have addresses keep what is stored, others are refused.
# REQ: DTRACE-91
echo 'a = malloc 100 M_TEMP M_WAITOK' >$TMP/w.wl
dtmalloc run -q -x strsize=4294967295 $TMP/w.wl -n 'dtmalloc::temp:malloc {
	this->y = "abc"; g = "hello"; h = "worldly";
	printf("%d %d %d\n", strlen(this->y), strlen(g), strlen(h)); }' || exit 2
dtmalloc run -q -x strsize=4294967295 $TMP/w.wl -n 'dtmalloc::temp:malloc {
	a = b = c = d = e = f = g = h = i = ""; }'
