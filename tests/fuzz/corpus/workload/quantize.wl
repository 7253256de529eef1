# Request sizes of a driver, as quantize() shows them:
#   dtmalloc run sim/examples/quantize.wl -n 'dtmalloc::foo_buf:malloc {@ = quantize(args[3])}'
kernel cpus=2 mem=1G seed=7
type M_FOO_BUF "foo buf" "buffers of the foo driver"

repeat 600 as i { small[i] = malloc uniform(16,256) M_FOO_BUF M_WAITOK }
repeat 150 as i { frame[i] = malloc normal(1500,300) M_FOO_BUF M_NOWAIT }
repeat 10 as i { table[i] = malloc choice(16K,64K,100K) M_FOO_BUF M_WAITOK|M_ZERO }
repeat 600 as i { free small[i] }
