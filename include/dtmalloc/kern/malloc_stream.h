/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of sysctl kern.malloc_stats, laid out as on FreeBSD. Compiles as C11 and as C++.
 *
 *   malloc_type_stream_header, then for each type, the newest first: malloc_type_header,
 *   mtsh_maxcpus times malloc_type_stats
 *
 * Counterpart:   sys/sys/malloc.h
 * Units:         bytes. Little-endian.
 * Source:        libmemstat(3); spec/malloc9.md 1.6, 7.2.
 */
#ifndef DTMALLOC_KERN_MALLOC_STREAM_H
#define DTMALLOC_KERN_MALLOC_STREAM_H

#include <dtmalloc/kern/malloc_type.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MALLOC_TYPE_STREAM_VERSION 0x00000001
#define MALLOC_MAX_NAME 32

struct malloc_type_stream_header {
  uint32_t mtsh_version;
  uint32_t mtsh_maxcpus; /* MAXCPU, not the CPUs of the machine */
  uint32_t mtsh_count;   /* types */
  uint32_t _mtsh_pad;
};

struct malloc_type_header {
  char mth_name[MALLOC_MAX_NAME]; /* cut to 31 bytes */
};

#ifdef __cplusplus
}
#endif

#endif /* DTMALLOC_KERN_MALLOC_STREAM_H */
