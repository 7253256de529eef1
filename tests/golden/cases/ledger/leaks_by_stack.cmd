# status 0
# K07. The kernel's sentence at the type's removal, then who allocated: 8 blocks of 128 bytes.
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_PMC "pmc"
type M_OTHER "other type"
repeat 8 as i { p[i] = malloc 100 M_PMC M_WAITOK @pmc_syscall_handler+0x1fb6;pmc_alloc }
q = malloc 70000 M_OTHER M_WAITOK @other
c = contigmalloc 5000 M_OTHER M_WAITOK @other
unload M_PMC
W
dtmalloc run "$TMP/w.wl" --report leaks,leaks=by-stack,findings
dtmalloc run "$TMP/w.wl" --report leaks --json
