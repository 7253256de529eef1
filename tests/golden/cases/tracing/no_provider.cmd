# status 1
# REQ: DSYM-10, DSYM-20. K18: what is missing is named, with what there is.
dtmalloc run sim/examples/leak.wl -n 'lockstat:::adaptive-acquire {}'
dtmalloc run sim/examples/leak.wl -n 'fbt::mallok:entry {}'
dtmalloc run sim/examples/leak.wl -n 'BEGIN {trace(`M_LEEK);}'
