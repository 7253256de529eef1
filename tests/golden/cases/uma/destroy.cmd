# status 0
# K05. What a destroyed zone says of items that are out, and nothing when there are none.
printf 'kernel cpus=1 mem=64M\nzone Z "left" size=1000\nzone Y "clean" size=1000 align=64 flags=NOBUCKET|NODUMP\na = uma_zalloc Z M_WAITOK\nb = uma_zalloc Y M_WAITOK|M_ZERO\numa_zfree Y b\nzdestroy Y\nzdestroy Z\n' | dtmalloc run -
