# status 0
printf '{"__version": "2", "memory-zone-statistics": {"zone": [\n{"name":"malloc-16","size":16,"limit":0,"used":1,"free":503,"requests":1,"fail":0,"sleep":0,"xdomain":0}]}}\n' | dtmalloc import vmstat-z -
