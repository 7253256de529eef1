# status 1
dtmalloc import vmstat-z tests/golden/cases/vmstat-m/09.txt 2>&1
dtmalloc import vmstat-m tests/golden/cases/vmstat-z/10.txt 2>&1
