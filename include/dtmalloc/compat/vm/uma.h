/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uma(9) for kernel C: the shadow of <vm/uma.h>.
 *
 *	uma_zone_t z = uma_zcreate("foo", sizeof(struct foo), NULL, NULL, NULL, NULL, UMA_ALIGN_PTR,
 *0); struct foo *f = uma_zalloc(z, M_WAITOK | M_ZERO); uma_zfree(z, f); uma_zdestroy(z);
 *
 * The functions act on the kernel of the calling thread's CPU, or on the default kernel. Whoever
 * boots a kernel destroys its zones with it.
 *
 * Units:         bytes; `align` is a mask (alignment - 1).
 * Errors:        NULL with M_NOWAIT; a panic unwinds as <sys/malloc.h> says.
 * Thread safety: as uma(9).
 * Source:        uma(9); spec/malloc9.md 5.
 */
#ifndef DTMALLOC_COMPAT_VM_UMA_H
#define DTMALLOC_COMPAT_VM_UMA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/malloc.h>

struct uma_zone;
typedef struct uma_zone* uma_zone_t;
typedef int (*uma_ctor)(void* mem, int size, void* arg, int flags);
typedef void (*uma_dtor)(void* mem, int size, void* arg);
typedef int (*uma_init)(void* mem, int size, int flags);
typedef void (*uma_fini)(void* mem, int size);
typedef int (*uma_import)(void* arg, void** store, int count, int domain, int flags);
typedef void (*uma_release)(void* arg, void** store, int count);
typedef void (*uma_maxaction_t)(uma_zone_t, int);

#define UMA_ALIGN_PTR (sizeof(void*) - 1)
#define UMA_ALIGN_LONG (sizeof(long) - 1)
#define UMA_ALIGN_INT (sizeof(int) - 1)
#define UMA_ALIGN_SHORT (sizeof(short) - 1)
#define UMA_ALIGN_CHAR 0
#define UMA_ALIGN_CACHE 63

#define UMA_ZONE_UNMANAGED 0x1
#define UMA_ZONE_ZINIT 0x2
#define UMA_ZONE_CONTIG 0x4
#define UMA_ZONE_NOTOUCH 0x8
#define UMA_ZONE_MALLOC 0x10
#define UMA_ZONE_NOFREE 0x20
#define UMA_ZONE_MTXCLASS 0x40
#define UMA_ZONE_VM 0x80
#define UMA_ZONE_NOTPAGE 0x100
#define UMA_ZONE_SECONDARY 0x200
#define UMA_ZONE_NOBUCKET 0x400
#define UMA_ZONE_MAXBUCKET 0x800
#define UMA_ZONE_NOTRIM 0x1000 /* UNVERIFIED */
#define UMA_ZONE_CACHESPREAD 0x2000
#define UMA_ZONE_NODUMP 0x4000
#define UMA_ZONE_PCPU 0x8000
#define UMA_ZONE_FIRSTTOUCH 0x10000
#define UMA_ZONE_ROUNDROBIN 0x20000
#define UMA_ZONE_SMR 0x40000
#define UMA_ZONE_NOKASAN 0x80000

#define UMA_RECLAIM_DRAIN 1
#define UMA_RECLAIM_DRAIN_CPU 2
#define UMA_RECLAIM_TRIM 3
#define UMA_ANYDOMAIN (-1)

uma_zone_t kern_uma_zcreate(const char* name, size_t size, uma_ctor ctor, uma_dtor dtor,
                            uma_init uminit, uma_fini fini, int align, uint32_t flags);
uma_zone_t kern_uma_zsecond_create(const char* name, uma_ctor ctor, uma_dtor dtor, uma_init zinit,
                                   uma_fini zfini, uma_zone_t primary);
uma_zone_t kern_uma_zcache_create(const char* name, int size, uma_ctor ctor, uma_dtor dtor,
                                  uma_init zinit, uma_fini zfini, uma_import import,
                                  uma_release release, void* arg, int flags);
void kern_uma_zdestroy(uma_zone_t zone);
void* kern_uma_zalloc_arg(uma_zone_t zone, void* arg, int flags);
void* kern_uma_zalloc_domain(uma_zone_t zone, void* arg, int domain, int flags);
void kern_uma_zfree_arg(uma_zone_t zone, void* item, void* arg);
void* kern_uma_zalloc_pcpu_arg(uma_zone_t zone, void* arg, int flags);
void kern_uma_zfree_pcpu_arg(uma_zone_t zone, void* item, void* arg);
int kern_uma_zone_set_max(uma_zone_t zone, int nitems);
void kern_uma_zone_set_maxcache(uma_zone_t zone, int nitems);
int kern_uma_zone_get_max(uma_zone_t zone);
int kern_uma_zone_get_cur(uma_zone_t zone);
void kern_uma_zone_set_warning(uma_zone_t zone, const char* warning);
void kern_uma_zone_set_maxaction(uma_zone_t zone, uma_maxaction_t action);
int kern_uma_zone_exhausted(uma_zone_t zone);
void kern_uma_zone_reserve(uma_zone_t zone, int nitems);
void kern_uma_prealloc(uma_zone_t zone, int nitems);
size_t kern_uma_zone_memory(uma_zone_t zone);
void kern_uma_reclaim(int req);
void kern_uma_reclaim_domain(int req, int domain);
void kern_uma_zone_reclaim(uma_zone_t zone, int req);
void kern_uma_zone_reclaim_domain(uma_zone_t zone, int req, int domain);
void kern_uma_reclaim_wakeup(void);
unsigned long kern_uma_size(void);
unsigned long kern_uma_limit(void);
void kern_uma_set_limit(unsigned long limit);
long kern_uma_avail(void);

#define uma_zcreate kern_uma_zcreate
#define uma_zsecond_create kern_uma_zsecond_create
#define uma_zcache_create kern_uma_zcache_create
#define uma_zdestroy kern_uma_zdestroy
#define uma_zalloc_arg kern_uma_zalloc_arg
#define uma_zalloc_domain kern_uma_zalloc_domain
#define uma_zfree_arg kern_uma_zfree_arg
#define uma_zalloc(zone, flags) kern_uma_zalloc_arg((zone), NULL, (flags))
#define uma_zfree(zone, item) kern_uma_zfree_arg((zone), (item), NULL)
#define uma_zalloc_pcpu(zone, flags) kern_uma_zalloc_pcpu_arg((zone), NULL, (flags))
#define uma_zfree_pcpu(zone, item) kern_uma_zfree_pcpu_arg((zone), (item), NULL)
#define uma_zone_set_max kern_uma_zone_set_max
#define uma_zone_set_maxcache kern_uma_zone_set_maxcache
#define uma_zone_get_max kern_uma_zone_get_max
#define uma_zone_get_cur kern_uma_zone_get_cur
#define uma_zone_set_warning kern_uma_zone_set_warning
#define uma_zone_set_maxaction kern_uma_zone_set_maxaction
#define uma_zone_exhausted kern_uma_zone_exhausted
#define uma_zone_reserve kern_uma_zone_reserve
#define uma_prealloc kern_uma_prealloc
#define uma_zone_memory kern_uma_zone_memory
#define uma_reclaim kern_uma_reclaim
#define uma_reclaim_domain kern_uma_reclaim_domain
#define uma_zone_reclaim kern_uma_zone_reclaim
#define uma_zone_reclaim_domain kern_uma_zone_reclaim_domain
#define uma_reclaim_wakeup kern_uma_reclaim_wakeup
#define uma_size kern_uma_size
#define uma_limit kern_uma_limit
#define uma_set_limit kern_uma_set_limit
#define uma_avail kern_uma_avail

#endif /* DTMALLOC_COMPAT_VM_UMA_H */
