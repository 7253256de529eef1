# status 0
# REQ: DFUNCS-50, DFUNCS-52, DFUNCS-53, DCMD-61. What D programs print as one document, in the three styles; with a
# drop; aggregations with -O alone.
cd $TMP
printf 'a = malloc 100 M_TEMP M_WAITOK\nwait 1500ms\nfree a\n' >w.wl
P='dtmalloc::temp:malloc {printf("%d <%s>", arg3, probename); @n[probefunc, "a\"b"] = count(); @q = quantize(arg3)}
dtmalloc::temp:free {trace(arg3); @n["free", "&"] = count()} END {printa("%s %s %@d\n", @n)}'
echo "json:"
dtmalloc run w.wl -q -O --json -n "$P"
for style in json,pretty xml,pretty html,pretty; do
  echo "$style:"
  dtmalloc run w.wl -q -O -x oformat=$style -n "$P"
done
echo "without -O:"
dtmalloc run w.wl -q --xml -n 'dtmalloc:::malloc {@ = count(); trace(1)}'
echo "a drop:"
dtmalloc run w.wl -q -x oformat=json,pretty -b 40 -n 'dtmalloc:::free {trace(1); trace(1)} dtmalloc:::free {trace(2); trace(3); trace(4)}'
echo "with reports the style is theirs:"
dtmalloc run w.wl -q --json --report types -n 'dtmalloc:::free {trace(1)}'
