# status 0
# REQ: DCMD-32. Scripts with golden tests of their own; sim/examples/sizes.d is one.
dtmalloc test sim/examples
