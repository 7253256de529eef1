# status 3
# REQ: OPT-54. The text's own newline is the only one.
printf 'kernel cpus=1 mem=1G invariants\ntype M_A "uaf"\na = malloc 16 M_A M_WAITOK\nfree a\npoke a 0x41\nb = malloc 16 M_A M_WAITOK\n' |
  dtmalloc run - --report sysctl=hw.ncpu
