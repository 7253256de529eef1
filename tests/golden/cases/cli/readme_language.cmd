# status 0
# The block under "The language" runs as it stands.
awk '/^## The language/ {on = 1} on && /^```/ {if (++fences == 2) exit; next} fences == 1' sim/README.md >"$TMP/w.wl"
dtmalloc run "$TMP/w.wl"
