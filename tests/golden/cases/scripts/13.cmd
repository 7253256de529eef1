# status 0
# S13. The pragma counts as -w: the shell of the host runs the command before and after ten minutes, what becomes of
# it is not the script's, the status is 0. Without pragma and -w the program is refused when it is enabled: status 1.
cat >$TMP/w.wl <<'W'
kernel cpus=1
type M_I "i915"
repeat 4 as i { x[i] = malloc 100 M_I M_WAITOK @drm_ioctl+0x2aa;i915_gem_create+0x31 }
wait 660s
y = malloc 100 M_I M_WAITOK @late+0x1
W
mkdir $TMP/bin
printf '#!/bin/sh\necho "$1: 1234"\n' >$TMP/bin/sysctl
chmod +x $TMP/bin/sysctl
cd tests/golden/cases/scripts
PATH=$TMP/bin:$PATH dtmalloc run $TMP/w.wl -s 13.d
echo status $?
printf '#!/bin/sh\nexit 1\n' >$TMP/bin/sysctl
PATH=$TMP/bin:$PATH dtmalloc run $TMP/w.wl -q -s 13.d
echo status $?
sed '/#pragma/d' 13.d >$TMP/tame.d
cd $TMP
dtmalloc run w.wl -s tame.d
echo status $?
PATH=$TMP/bin:$PATH dtmalloc run w.wl -qw -s tame.d
echo status $?
