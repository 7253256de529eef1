# status 0
printf 'BEGIN { printf("%%d %%s\\n", $1, $$2); }\n' >"$TMP/a.d"
dtmalloc run sim/examples/leak.wl -q -n 'BEGIN { printf("first %d\n", $1); } END { printf("%s\n", $$2); }' -s "$TMP/a.d" 42 word
