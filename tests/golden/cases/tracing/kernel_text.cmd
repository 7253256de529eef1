# status 0
# Text read out of kernel structures shows simulated addresses: two runs print the same bytes.
# REQ: DTRACE-90
cat >$TMP/w.wl <<'W'
type M_HELLO "hello world"
a = malloc 100 M_HELLO M_WAITOK
free a
W
cat >$TMP/t.d <<'D'
#pragma D option quiet
dtmalloc::hello_world:malloc {
	this->type = (char *)args[0];
	printf("%S|%S|%S\n", stringof(this->type + 1), stringof(this->type + 16),
	    stringof(this->type + 17));
	printf("%d %S %S\n", strlen(this->type + 1), strjoin(this->type + 1, "x"),
	    substr(this->type + 16, 4));
	this->text = stringof(this->type + 1);
	printf("%S %d\n", this->text, this->text == stringof(this->type + 1));
	@[stringof(this->type + 1)] = count();
}
D
dtmalloc run $TMP/w.wl -s $TMP/t.d
