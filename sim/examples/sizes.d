/*
 * Which sizes of foo_buf come from which size class. A script with its own golden test:
 *   dtmalloc test sim/examples/sizes.d
 */
/*! run quantize.wl -q */
/*! expect
*/
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
