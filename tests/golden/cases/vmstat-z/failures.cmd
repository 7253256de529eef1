# status 0
# The table of 8.0 has FAILURES behind REQUESTS.
printf 'z: 128, 0, 5, 3, 10, 2\n' | dtmalloc import vmstat-z - 2>&1
