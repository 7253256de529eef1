# status 0
# K14. Wired memory grew by far more than the zones did: used and free bytes of all rows add up to what the total line
# says, 1392114304 = 1333297844 + 58816460, and the machine's memory that is in no zone is not theirs.
cat >$TMP/z.txt <<'Z'
ITEM                   SIZE  LIMIT     USED     FREE      REQ     FAILSLEEP XDOMAIN

big:                1048576,      0,    1271,      56,    1500,   0,   0,   0
page:                  4096,      0,     136,      23,    9000,   0,   0,   0
small:                    4,      0,     173,     499,   20000,   0,   0,   0
Z
cd $TMP
dtmalloc import vmstat-z z.txt >z.wl
dtmalloc run z.wl --report memory
# The capture with what the machine had wired: 16 GB.
echo 'vm.stats.vm.v_wire_count: 4194304' >>z.txt
dtmalloc import vmstat-z z.txt 2>&1 >other.wl | tail -1
cmp z.wl other.wl
