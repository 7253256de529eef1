# status 0
# K05. What a destroyed zone says of items that are out, and nothing when there are none.
printf 'kernel cpus=1 mem=64M\nzone Z "left" size=1000\nzone Y "clean" size=1000 align=64 flags=NOBUCKET|NODUMP\na = uma_zalloc Z M_WAITOK\nb = uma_zalloc Y M_WAITOK|M_ZERO\numa_zfree Y b\nzdestroy Y\nzdestroy Z\n' | dtmalloc run -
# Nine of 1000 bytes: three slabs of a page, four to each; two that came back are not out.
cat >$TMP/w.wl <<'W'
kernel cpus=1 mem=64M
zone Z "freed uma keg" size=1000
repeat 11 as i { x[i] = uma_zalloc Z M_WAITOK }
uma_zfree Z x[0]
uma_zfree Z x[1]
zdestroy Z
W
dtmalloc run $TMP/w.wl
