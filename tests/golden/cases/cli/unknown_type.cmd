# status 1
printf 'kernel cpus=1\ntype M_T "t"\na = malloc 10 M_TT M_WAITOK\n' >"$TMP/bad.wl"
cd "$TMP" && dtmalloc run bad.wl
