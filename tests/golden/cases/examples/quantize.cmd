# status 0
dtmalloc run sim/examples/quantize.wl -n 'dtmalloc::foo_buf:malloc {@ = quantize(args[3])}'
dtmalloc run sim/examples/quantize.wl -s sim/examples/quantize.d
