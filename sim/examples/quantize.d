/* Sizes as the allocator serves them: classes, and whole pages above the largest class. */
dtmalloc::foo_buf:malloc
{
	@["bytes"] = quantize(args[3]);
}

dtmalloc::foo_buf:malloc
/args[4] == -1/
{
	@large["beyond the classes"] = count();
}
