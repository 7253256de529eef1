/* SPDX-License-Identifier: BSD-2-Clause */
/* A driver's use of uma(9), as kernel C. */
#include <sys/param.h>
#include <vm/uma.h>

struct softc {
  int unit;
  char pad[60];
};

static int made;

static int softc_ctor(void* mem, int size, void* arg, int flags) {
  struct softc* sc = mem;

  (void)size;
  (void)flags;
  sc->unit = *(int*)arg;
  made++;
  return (0);
}

/* How many items a zone of `limit` gives out before it refuses; -1: something else is wrong. */
int driver_fills_its_zone(int limit);
int driver_fills_its_zone(int limit) {
  uma_zone_t zone;
  void* items[64];
  int unit = 7, n = 0;

  made = 0;
  zone = uma_zcreate("softc", sizeof(struct softc), softc_ctor, NULL, NULL, NULL, UMA_ALIGN_CACHE,
                     UMA_ZONE_NODUMP);
  if (uma_zone_set_max(zone, limit) != limit || uma_zone_get_max(zone) != limit) return (-1);
  while (n < 64 && (items[n] = uma_zalloc_arg(zone, &unit, M_NOWAIT)) != NULL) n++;
  if (made != n || ((struct softc*)items[0])->unit != 7 || uma_zone_get_cur(zone) != n) return (-1);
  for (int i = 0; i < n; i++) uma_zfree(zone, items[i]);
  uma_zfree(zone, uma_zalloc_domain(zone, &unit, 0, M_WAITOK));
  uma_reclaim(UMA_RECLAIM_DRAIN_CPU);
  if (uma_zone_memory(zone) != 0) return (-1);
  uma_zdestroy(zone);
  return (n);
}
