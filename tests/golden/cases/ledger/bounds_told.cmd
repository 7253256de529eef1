# status 0
# Each report says what the ledger's bounds left out of it.
cat >"$TMP/w.wl" <<'E'
kernel cpus=1 mem=1G ledger_blocks=2
type M_T "t"
repeat 5 as i { x[i] = malloc 100 M_T M_WAITOK }
free x[4] M_TEMP
E
cd "$TMP"
dtmalloc run w.wl --report waste,findings,peaks,history=x[4]
dtmalloc run w.wl --report waste,findings --json
