# status 1
# S26. A stack is no value: refused while compiling, at the line of the assignment.
echo 'wait 1s' >$TMP/w.wl
cd tests/golden/cases/scripts
dtmalloc run $TMP/w.wl -s 26.d
dtmalloc run $TMP/w.wl -x errtags -s 26.d
dtmalloc check 26.d
