/*
 * Which sizes of foo_buf come from which size class. A script with its own golden test:
 *   dtmalloc test sim/examples/sizes.d
 */
/*! run quantize.wl -q */
/*! expect
    size  zone  count
      32     1     42
      64     2     76
     128     3    178
     256     4    304
    1024     7     12
    2048     8    135
    4096     9      3
   16384    11      4
   65536    13      2
  102400    -1      4

*/
#pragma D option aggsortkey

dtmalloc::foo_buf:malloc
/args[3] > 0/
{
	@sizes[args[3], args[4]] = count();
}

END
{
	printf("%8s %5s %6s\n", "size", "zone", "count");
	printa("%8d %5d %@6d\n", @sizes);
}
