# status 0
# REQ: DSYM-11, DSYM-12, DSYM-13. Which zones are used and how they are cut; a zone that comes and goes.
cat >$TMP/w.wl <<'W'
kernel cpus=2 mem=64M
type M_FOO "foo"
a = malloc 100 M_FOO M_WAITOK
zone Z "my zone" size=100 align=64 limit=300 warning="full"
zone Y "my zone" size=100 flags=NOBUCKET
repeat 3 as i { x[i] = uma_zalloc Z M_WAITOK }
uma_zfree Z x[0]
b = uma_zalloc Y M_WAITOK
uma_zfree Y b
zdestroy Y
free a
W
dtmalloc run $TMP/w.wl -q -n 'fbt::uma_zalloc_arg:entry {@[stringof(args[0]->uz_name)] = count();}'
dtmalloc run $TMP/w.wl -q -n 'fbt::uma_zfree_arg:entry {@[stringof(args[0]->uz_name), args[0]->uz_keg->uk_rsize, args[0]->uz_keg->uk_ipers] = count();}'
dtmalloc run $TMP/w.wl -q -n 'fbt::uma_zcreate:entry {printf("%s %d, ", stringof(args[0]), args[1]);} fbt::uma_zcreate:return {printf("%s at %p, keg %p\n", stringof(args[1]->uz_ctlname), arg1, args[1]->uz_keg);}'
dtmalloc run $TMP/w.wl -q -n 'fbt::uma_zone_set_max:return {print(*`uma_kegs.lh_first); print(*`uma_kegs.lh_first->uk_zones.lh_first);}'
dtmalloc run $TMP/w.wl -q -n 'fbt::uma_zdestroy:entry {z = args[0]; printf("%s of %d\n", stringof(z->uz_name), ((uma_zone_t)arg0)->uz_size);} fbt::uma_zdestroy:return {trace(z->uz_size);}'
dtmalloc run $TMP/w.wl -n 'fbt::uma_zalloc_arg:entry {trace(args[0]->uz_sise);}' || true
