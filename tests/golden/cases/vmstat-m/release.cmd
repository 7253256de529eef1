# status 1
cd tests/golden/cases/vmstat-m
dtmalloc import vmstat-m 09.txt --release 8
dtmalloc import vmstat-m 09.txt --release 14
dtmalloc import vmstat-m 05.txt --release 12
