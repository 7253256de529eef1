# status 3
printf 'kernel cpus=1 mem=64M\nzone Z "tight" size=64 limit=1\na = uma_zalloc Z M_WAITOK\nb = uma_zalloc Z M_WAITOK @foo_attach+0x1c\n' | dtmalloc run -
