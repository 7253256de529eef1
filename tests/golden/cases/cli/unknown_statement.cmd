# status 1
printf 'repaet 3 { }\n' | dtmalloc run -
