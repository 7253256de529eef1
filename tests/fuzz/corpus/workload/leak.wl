# A driver that forgets a block each time it is closed, and is unloaded: the kernel prints a warning.
kernel cpus=1 mem=1G
type M_LEAKY "leaky" "softc of the leaky driver"

repeat 8 as i {
  softc[i] = malloc 128 M_LEAKY M_WAITOK|M_ZERO @leaky_open+0x24
  ring[i] = malloc 2000 M_LEAKY M_WAITOK @leaky_open+0x58
  free ring[i] @leaky_close+0x10
}
expect inuse(M_LEAKY) == 8 && memuse(M_LEAKY) == 1024
unload M_LEAKY
