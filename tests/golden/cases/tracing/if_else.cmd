# status 0
# if and else: each piece is a clause of its own, and all of them count as matched.
# REQ: DSTRUCT-01 DSTRUCT-02
cat >$TMP/w.wl <<'W'
type M_HELLO "hello"
repeat 6 as i { x[i] = malloc 100 M_HELLO M_WAITOK }
a = malloc 3000 M_HELLO M_WAITOK
W
cat >$TMP/t.d <<'D'
BEGIN { if (3 > 2) { printf("yes"); } else { printf("no"); } }
dtmalloc::hello:malloc {
	n++;
	if (args[3] > 2048)
		@size["large"] = sum(args[3]);
	else if (n % 2 == 0) {
		@size["even"] = sum(args[3]);
		last = n;
	} else
		@size["odd"] = sum(args[3]);
}
END { printf("last even: %d\n", last) }
D
cd $TMP
dtmalloc run w.wl -s t.d
dtmalloc run w.wl -qn 'BEGIN {if (3 > 2) {printf("yes");} else {printf("no");} exit(0)}'
