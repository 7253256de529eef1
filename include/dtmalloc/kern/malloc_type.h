/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_type and its statistics, laid out as on FreeBSD 16 LP64. Compiles as C11 and as C++.
 *
 * Counterpart:   sys/sys/malloc.h
 * Locking:       ks_next is guarded by malloc_mtx. A malloc_type_stats belongs to one CPU: its
 *                owner writes it inside a critical section, others read it racily.
 * Source:        malloc(9); spec/malloc9.md 1.5 and 1.6.
 */
#ifndef DTMALLOC_KERN_MALLOC_TYPE_H
#define DTMALLOC_KERN_MALLOC_TYPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define M_VERSION 2024073001

#define DTMALLOC_PROBE_MALLOC 0
#define DTMALLOC_PROBE_FREE 1
#define DTMALLOC_PROBE_MAX 2

/* One CPU's statistics of one type; 64 bytes, one cache line. */
struct malloc_type_stats {
  uint64_t mts_memalloced; /* bytes ever allocated on this CPU */
  uint64_t mts_memfreed;   /* bytes ever freed on this CPU */
  uint64_t mts_numallocs;  /* successful allocations on this CPU */
  uint64_t mts_numfrees;   /* frees on this CPU */
  uint64_t mts_size;       /* bit mask of the zone indexes ever used on this CPU */
  uint64_t _mts_reserved1;
  uint64_t _mts_reserved2;
  uint64_t _mts_reserved3;
};

struct malloc_type_internal {
  uint32_t mti_probes[DTMALLOC_PROBE_MAX]; /* probe ids; 0: not enabled */
  unsigned char mti_zone;                  /* subzone number */
  struct malloc_type_stats* mti_stats;     /* encoded per-CPU base: an offset, not a pointer */
  unsigned long mti_spare[8];
};

struct malloc_type {
  struct malloc_type* ks_next;
  unsigned long ks_version;
  const char* ks_shortdesc;
  struct malloc_type_internal ks_mti;
};

#ifdef __cplusplus
}
#endif

#endif /* DTMALLOC_KERN_MALLOC_TYPE_H */
