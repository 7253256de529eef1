# status 0
# The earlier state is imported, what changed is told.
printf 'Type InUse MemUse Requests Size(s)\n a 1 1K 1 16\n b 2 1K 2 16\nType InUse MemUse Requests Size(s)\n a 1 1K 1 16\n b 3 1K 9 16\n c 1 1K 1 16\n' | dtmalloc import vmstat-m - 2>&1
