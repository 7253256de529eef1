# status 1
# K11, K30. A type that is not there, with what may be meant; a description where the symbol belongs.
printf 'kernel cpus=1\ntype M_T "t"\na = malloc 10 M_TT M_WAITOK\n' >"$TMP/bad.wl"
cd "$TMP" && dtmalloc run bad.wl
for type in demo '"demo"' '"demos"' '"another"'; do
  printf 'type M_DEMO "demo"\ntype M_T "t"\na = malloc 10 %s M_WAITOK\n' "$type" | dtmalloc run -
done
