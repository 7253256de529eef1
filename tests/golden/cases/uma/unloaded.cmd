# status 0
# K02. After a module is gone with its zone and its type: the zone is gone from the list, with the kernel's message about
# the item that was out, and the type's sentence; nothing crashes, and D that reads the old type is told so.
cat >$TMP/w.wl <<'W'
kernel cpus=1 mem=64M
type M_DRM "drm" "of the module"
zone Z "drm_buf" size=1000
a = uma_zalloc Z M_WAITOK
b = malloc 100 M_DRM M_WAITOK
zdestroy Z
unload M_DRM
c = malloc 10 M_TEMP M_WAITOK
W
cd $TMP
dtmalloc run w.wl --report vmstat-m
dtmalloc run w.wl --report vmstat-z | grep -c drm
dtmalloc run w.wl -n 'dtmalloc::drm:malloc {kept = args[0];} dtmalloc::temp:malloc {trace(stringof(kept->ks_shortdesc));}'
