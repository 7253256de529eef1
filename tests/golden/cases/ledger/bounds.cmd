# status 0
# K32. A full table of stacks: counting goes on, under "other".
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G ledger_blocks=6 ledger_stacks=2
type M_T "t"
a = malloc 10 M_T M_WAITOK @a
b = malloc 10 M_T M_WAITOK @b
repeat 4 as i { c[i] = malloc 10 M_T M_WAITOK @c }
repeat 3 as i { d[i] = malloc 10 M_T M_WAITOK @a }
W
dtmalloc run "$TMP/w.wl" --report leaks
