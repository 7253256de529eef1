# status 0
# REQ: WL-24
printf 'type M_A "hello world"\nsysctl vm.memguard.desc=fooo\nsysctl vm.memguard.desc=M_A\nsysctl vm.memguard.desc="hello world"\n' |
  dtmalloc run --memguard --tunable 'vm.memguard.desc=helo world' -
printf 'a = malloc 10 M_TEMP M_ZERO\nb = malloc 10 M_TEMP M_WAITOK|M_NOWAIT\n' | dtmalloc run -
