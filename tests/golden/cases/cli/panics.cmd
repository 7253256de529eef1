# status 3
for context in critical interrupt nosleep; do
  printf 'type M_A "a"\n%s { a = malloc 64 M_A M_WAITOK }\n' $context | dtmalloc run - --invariants >/dev/null
done
printf 'kernel cpus=1 mem=1M\ntype M_A "a"\nrepeat 300 as i { x[i] = malloc 65536 M_A M_WAITOK @fill }\n' | dtmalloc run - >/dev/null
