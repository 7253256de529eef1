# status 0
dtmalloc import vmstat-z tests/golden/cases/vmstat-z/02.txt
