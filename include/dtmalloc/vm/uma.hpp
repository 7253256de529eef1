// SPDX-License-Identifier: BSD-2-Clause
// uma(9): zones of items of one size.
//
// Example:
//   uma_zone* z = uma_zcreate(kernel.vm(), "foo", 100, nullptr, nullptr, nullptr, nullptr,
//                             UMA_ALIGN_PTR, 0);
//   void* item = uma_zalloc(z, kM_WAITOK);
//   uma_zfree(z, item);
//   uma_zdestroy(z);
//
// Units:         bytes; `align` is a mask (alignment - 1).
// Errors:        nullptr under M_NOWAIT; KernelPanic where the kernel panics.
// Thread safety: any thread; one that owns no CPU of the machine is given one. A zone is destroyed
//                when nobody uses it.
// Source:        uma(9); spec/malloc9.md 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtmalloc {

struct Vm;
struct uma_zone;
using uma_zone_t = uma_zone*;

using uma_ctor = int (*)(void* mem, int size, void* arg, int flags);
using uma_dtor = void (*)(void* mem, int size, void* arg);
using uma_init = int (*)(void* mem, int size, int flags);
using uma_fini = void (*)(void* mem, int size);
// A cache-only zone's source: how many of `count` items it could store; and where they go.
using uma_import = int (*)(void* arg, void** store, int count, int domain, int flags);
using uma_release = void (*)(void* arg, void** store, int count);

inline constexpr int UMA_ALIGN_PTR = 8 - 1;
inline constexpr int UMA_ALIGN_CACHE = 64 - 1;

enum : std::uint32_t {
  UMA_ZONE_UNMANAGED = 0x1,
  UMA_ZONE_ZINIT = 0x2,
  UMA_ZONE_CONTIG = 0x4,
  UMA_ZONE_NOTOUCH = 0x8,
  UMA_ZONE_MALLOC = 0x10,
  UMA_ZONE_NOFREE = 0x20,
  UMA_ZONE_MTXCLASS = 0x40,
  UMA_ZONE_VM = 0x80,
  UMA_ZONE_NOTPAGE = 0x100,
  UMA_ZONE_SECONDARY = 0x200,
  UMA_ZONE_NOBUCKET = 0x400,
  UMA_ZONE_MAXBUCKET = 0x800,
  UMA_ZONE_NOTRIM = 0x1000,  // UNVERIFIED value; release 16: TRIM and the timer pass it over
  UMA_ZONE_CACHESPREAD = 0x2000,
  UMA_ZONE_NODUMP = 0x4000,
  UMA_ZONE_PCPU = 0x8000,
  UMA_ZONE_FIRSTTOUCH = 0x10000,
  UMA_ZONE_ROUNDROBIN = 0x20000,
  UMA_ZONE_SMR = 0x40000,
  UMA_ZONE_NOKASAN = 0x80000,
  UMA_ZFLAG_OFFPAGE = 0x00200000,
  UMA_ZFLAG_HASH = 0x00400000,
  UMA_ZFLAG_VTOSLAB = 0x00800000,
  UMA_ZFLAG_CTORDTOR = 0x01000000,
  UMA_ZFLAG_LIMIT = 0x02000000,
  UMA_ZFLAG_CACHE = 0x04000000,
  UMA_ZFLAG_BUCKET = 0x10000000,
  UMA_ZFLAG_INTERNAL = 0x20000000,
  UMA_ZFLAG_TRASH = 0x40000000,
};

uma_zone* uma_zcreate(Vm& vm, const char* name, std::size_t size, uma_ctor ctor, uma_dtor dtor,
                      uma_init uminit, uma_fini fini, int align, std::uint32_t flags);
// A zone with another's keg and constructors of its own; zinit and zfini run between the keg and
// the new zone's caches. It is destroyed before the primary zone.
uma_zone* uma_zsecond_create(const char* name, uma_ctor ctor, uma_dtor dtor, uma_init zinit,
                             uma_fini zfini, uma_zone* primary);
// A zone of caches only. Items of `size` bytes come from `import` and go to `release`.
uma_zone* uma_zcache_create(Vm& vm, const char* name, std::size_t size, uma_ctor ctor,
                            uma_dtor dtor, uma_init zinit, uma_fini zfini, uma_import import,
                            uma_release release, void* arg, std::uint32_t flags);
// Prints on the console what is lost if items are still out. Panics while somebody waits for one.
// In the zone's own action (uma_zone_set_maxaction) it is done when the action is through.
void uma_zdestroy(uma_zone* zone);
void* uma_zalloc_arg(uma_zone* zone, void* arg, int flags);
// From that NUMA domain, past the CPU's buckets.
void* uma_zalloc_domain(uma_zone* zone, void* arg, int domain, int flags);
void uma_zfree_arg(uma_zone* zone, void* item, void* arg);
inline void* uma_zalloc(uma_zone* zone, int flags) { return uma_zalloc_arg(zone, nullptr, flags); }
inline void uma_zfree(uma_zone* zone, void* item) { uma_zfree_arg(zone, item, nullptr); }

// The zones that are not destroyed, oldest first, and a zone's name. A name is not unique.
std::vector<uma_zone*> uma_zones(Vm& vm);
const char* uma_zone_name(const uma_zone* zone);

// --- per-CPU items (UMA_ZONE_PCPU): one copy for each CPU that the machine boots with
void* uma_zalloc_pcpu_arg(uma_zone* zone, void* arg, int flags);  // M_ZERO: every copy
void uma_zfree_pcpu_arg(uma_zone* zone, void* item, void* arg);
inline void* uma_zalloc_pcpu(uma_zone* zone, int flags) {
  return uma_zalloc_pcpu_arg(zone, nullptr, flags);
}
inline void uma_zfree_pcpu(uma_zone* zone, void* item) { uma_zfree_pcpu_arg(zone, item, nullptr); }
// The copy of a CPU.
inline void* zpcpu_get_cpu(void* item, int cpu) {
  return static_cast<std::byte*>(item) + static_cast<std::size_t>(cpu) * 4096;
}
// The kernel's zone "pcpu-4", "-8", "-16", "-32" or "-64"; null for another size.
uma_zone* pcpu_zone(Vm& vm, std::size_t size);

// --- limits. At its limit a zone refuses M_NOWAIT and makes M_WAITOK wait its turn. As in the
// kernel the sizes are plain words: set them before others use the zone.
int uma_zone_set_max(uma_zone* zone, int nitems);        // also bounds the caches; returns nitems
void uma_zone_set_maxcache(uma_zone* zone, int nitems);  // the caches alone
int uma_zone_get_max(uma_zone* zone);                    // 0: none
int uma_zone_get_cur(uma_zone* zone);                    // items that are out
// "[zone: NAME] WARNING" on the console when the limit is met, at most every 300 s.
void uma_zone_set_warning(uma_zone* zone, const char* warning);
// Called soon after the limit is met. It must not sleep.
void uma_zone_set_maxaction(uma_zone* zone, std::function<void(uma_zone*)> action);
bool uma_zone_exhausted(uma_zone* zone);  // whether somebody waits

// --- reserves (set before others use the zone) and sizes
void uma_zone_reserve(uma_zone* zone, int items);  // only M_USE_RESERVE takes the last `items`
void uma_prealloc(uma_zone* zone, int items);      // makes slabs for so many; may sleep
std::size_t uma_zone_memory(uma_zone* zone);       // bytes of its slabs, or of a cache's items
unsigned long uma_size(Vm& vm);                    // bytes of all slabs and large blocks
// The soft limit of uma_size(); beyond it the caches are drained. Nothing is refused.
unsigned long uma_limit(Vm& vm);
void uma_set_limit(Vm& vm, unsigned long limit);
long uma_avail(Vm& vm);           // limit less size; negative beyond the limit
void uma_reclaim_wakeup(Vm& vm);  // the worker is to drain the caches, at most once a second

// --- giving memory back
inline constexpr int UMA_RECLAIM_DRAIN = 1;      // every full bucket, every empty slab
inline constexpr int UMA_RECLAIM_DRAIN_CPU = 2;  // and what the CPUs hold
inline constexpr int UMA_RECLAIM_TRIM = 3;       // what is beyond the working sets
inline constexpr int UMA_ANYDOMAIN = -1;
// All zones but UMA_ZONE_UNMANAGED ones. Not in a critical section. Another `req` panics.
void uma_reclaim(Vm& vm, int req);
void uma_reclaim_domain(Vm& vm, int req, int domain);
void uma_zone_reclaim(uma_zone* zone, int req);
void uma_zone_reclaim_domain(uma_zone* zone, int req, int domain);

}  // namespace dtmalloc
