# status 0
# A recorded run, replayed: the same tables, the same firings.
workload=sim/examples/numa.wl
dtmalloc run $workload --report vmstat-m,vmstat-z >"$TMP/run"
for form in text binary; do
  dtmalloc record $workload --$form -o "$TMP/$form.trace"
  dtmalloc replay "$TMP/$form.trace" --report vmstat-m,vmstat-z | cmp - "$TMP/run"
done
dtmalloc record "$TMP/binary.trace" | cmp - "$TMP/text.trace"
dtmalloc record - --binary <"$TMP/text.trace" | cmp - "$TMP/binary.trace"
printf 'type M_A "a"\nrepeat 3 as i { x[i] = malloc 100*(i+1) M_A M_WAITOK @f;g }\nwait 5ms\ncpu 2\nfree x[1]\n' >"$TMP/w.wl"
dtmalloc record "$TMP/w.wl" --seed 9 --cpus 3
dtmalloc record "$TMP/w.wl" --binary | dtmalloc replay - -q -n 'dtmalloc::a: {printf("%s %d, CPU %d at %d\n", probename, arg3, cpu, timestamp); stack();}'
