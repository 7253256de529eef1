# status 0
# K09. 64 bytes leaked: the class; the request was for less.
cat >"$TMP/w.wl" <<'W'
kernel cpus=1 mem=1G
type M_BRCM "brcmfmac"
a = malloc 40 M_BRCM M_WAITOK @brcmf_fw_load
unload M_BRCM
W
dtmalloc run "$TMP/w.wl" --report leaks=brcmfmac,findings
