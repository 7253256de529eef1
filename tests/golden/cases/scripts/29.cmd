# status 0
# S29. Index and size of each class: 0 to 13 on releases 14 and 16, 0 to 12 without 384 on 12. What is larger is -1, signed, and
# whole pages. On free arg4 is 0 whatever the class.
cat >$TMP/w.wl <<'W'
kernel cpus=1
repeat 2 { a = malloc 16 M_TEMP M_WAITOK }
a = malloc 32 M_TEMP M_WAITOK
a = malloc 64 M_TEMP M_WAITOK
a = malloc 128 M_TEMP M_WAITOK
a = malloc 256 M_TEMP M_WAITOK
a = malloc 257 M_TEMP M_WAITOK      # 384, or 512
a = malloc 512 M_TEMP M_WAITOK
a = malloc 1K M_TEMP M_WAITOK
a = malloc 2K M_TEMP M_WAITOK
a = malloc 4K M_TEMP M_WAITOK
a = malloc 8K M_TEMP M_WAITOK
a = malloc 16K M_TEMP M_WAITOK
a = malloc 32K M_TEMP M_WAITOK
a = malloc 64K M_TEMP M_WAITOK
free a
a = malloc 65537 M_DEVBUF M_WAITOK  # 17 pages
b = malloc 16 M_DEVBUF M_WAITOK
free a
free b
W
cd tests/golden/cases/scripts
for release in 16 14 12; do
  dtmalloc run $TMP/w.wl -q --release $release -s 29.d
done
dtmalloc run $TMP/w.wl -q -n 'dtmalloc:::free {@[probefunc, arg4, args[4], args[3]] = count();}'
