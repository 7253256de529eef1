# status 0
# REQ: DCMD-31. The example of sim/README.md.
dtmalloc check sim/examples/sizes.d sim/examples/quantize.wl
