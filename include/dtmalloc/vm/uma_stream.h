/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of sysctl vm.zone_stats, laid out as on FreeBSD. Compiles as C11 and as C++.
 *
 *   uma_stream_header, then for each zone: uma_type_header, ush_maxcpus times uma_percpu_stat
 *
 * Counterpart:   sys/vm/uma.h
 * Units:         items; pages of 4096 bytes; sizes in bytes. Little-endian.
 * Source:        libmemstat(3); spec/malloc9.md 7.3.
 */
#ifndef DTMALLOC_VM_UMA_STREAM_H
#define DTMALLOC_VM_UMA_STREAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UMA_STREAM_VERSION 0x00000001
#define UTH_MAX_NAME 32
#define UTH_ZONE_SECONDARY 0x00000001

struct uma_stream_header {
  uint32_t ush_version;
  uint32_t ush_maxcpus; /* of this stream: mp_maxid + 1 */
  uint32_t ush_count;   /* zones */
  uint32_t _ush_pad;
};

struct uma_type_header {
  char uth_name[UTH_MAX_NAME]; /* cut to 31 bytes */
  uint32_t uth_align;          /* a mask */
  uint32_t uth_size;
  uint32_t uth_rsize;
  uint32_t uth_maxpages; /* what the limit comes to */
  uint32_t uth_limit;
  uint32_t uth_pages;
  uint32_t uth_keg_free;
  uint32_t uth_zone_free;
  uint32_t uth_bucketsize; /* always 0 */
  uint32_t uth_zone_flags;
  uint64_t uth_allocs; /* past the CPUs' buckets */
  uint64_t uth_frees;
  uint64_t uth_fails;
  uint64_t uth_sleeps;
  uint64_t uth_xdomain;
  uint64_t _uth_reserved1[1];
};

struct uma_percpu_stat {
  uint64_t ups_allocs;
  uint64_t ups_frees;
  uint64_t ups_cache_free; /* in alloc, free and cross bucket */
  uint64_t _ups_reserved[5];
};

#ifdef __cplusplus
}
#endif

#endif /* DTMALLOC_VM_UMA_STREAM_H */
