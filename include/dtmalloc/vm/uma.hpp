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

namespace dtmalloc {

struct Vm;
struct uma_zone;
using uma_zone_t = uma_zone*;

using uma_ctor = int (*)(void* mem, int size, void* arg, int flags);
using uma_dtor = void (*)(void* mem, int size, void* arg);
using uma_init = int (*)(void* mem, int size, int flags);
using uma_fini = void (*)(void* mem, int size);

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
void uma_zdestroy(uma_zone* zone);
void* uma_zalloc_arg(uma_zone* zone, void* arg, int flags);
// From that NUMA domain, past the CPU's buckets.
void* uma_zalloc_domain(uma_zone* zone, void* arg, int domain, int flags);
void uma_zfree_arg(uma_zone* zone, void* item, void* arg);
inline void* uma_zalloc(uma_zone* zone, int flags) { return uma_zalloc_arg(zone, nullptr, flags); }
inline void uma_zfree(uma_zone* zone, void* item) { uma_zfree_arg(zone, item, nullptr); }

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
