# status 0
printf 'type M_A "a b"\ntype M_B "a_b"\n' | dtmalloc list -
