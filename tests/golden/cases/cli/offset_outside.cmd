# status 1
for offset in 9223372036854775807 1152921504606846976 '(0-9223372036854775807)'; do
  printf 'a = malloc 100 M_TEMP M_WAITOK\nfree a+%s\n' "$offset" | dtmalloc run -
done
