# status 0
# Numbers of HighUse are not kept: a message.
printf ' devbuf 12 2K 890K 4321 16,32,64,256\n' | dtmalloc import vmstat-m - 2>&1
