# status 0
# S27, K17. The type of a module that is not loaded: without -Z a refusal that names the description; with -Z the run
# goes on, and a type registered meanwhile is not seen, as in the kernel; a note and `check` say so.
cat >$TMP/w.wl <<'W'
kernel cpus=1
a = malloc 100 M_TEMP M_WAITOK
type M_VMM "vmmnet"
b = malloc 100 M_VMM M_WAITOK
free b
W
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 27.d
echo status $?
dtmalloc run $TMP/w.wl -Z -s 27.d
echo status $?
dtmalloc check 27.d $TMP/w.wl -Z
echo status $?
