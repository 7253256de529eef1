# status 3
# An assertion of zone creation.
printf 'kernel invariants mem=64M\nzone Z "zz" size=64 flags=MAXBUCKET|NOBUCKET\n' | dtmalloc run -
