# status 0
dtmalloc import vmstat-z tests/golden/cases/vmstat-z/14.txt
