// SPDX-License-Identifier: BSD-2-Clause
// Allocating and freeing items: the CPU's buckets, the zone's list of full ones, the keg.
//
// Counterpart:  sys/vm/uma_core.c (uma_zalloc_arg, uma_zfree_arg, cache_*, zone_*)
// Locking:      a cache belongs to its CPU inside a section; uzd_lock for the bucket list, never in
//               a section. No lock is held while pages are waited for.
// Invariants:   UMA-1 (uma_int.hpp); uc_flow moves with every bucket that comes or goes
// Differs:      one domain. DEVIATES: in deterministic runs no lock is ever contended on the host,
// so one
//               counts as contended when another CPU took it less than kContended ago, of virtual
//               time
#include <algorithm>
#include <cstring>

#include "smp/section.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kContended = 250;  // ns; two operations at their default cost

// Takes a zone-domain's lock. The place where contention is noticed, and uz_bucket_size grows.
std::unique_lock<std::mutex> zone_domain_lock(uma_zone& zone) {
  uma_zone_domain& domain = zone.uz_domain[0];
  CpuSet& cpus = zone.vm->cpus;
  std::unique_lock lock(domain.uzd_lock, std::try_to_lock);
  bool contended = !lock.owns_lock();
  if (contended) lock.lock();
  if (cpus.mode() == RunMode::deterministic) {
    const std::uint64_t now = cpus.clock().now();
    const int cpu = curcpu->id;
    contended =
        domain.last_cpu >= 0 && domain.last_cpu != cpu && now - domain.last_time < kContended;
    domain.last_cpu = cpu;
    domain.last_time = now;
  }
  const std::uint16_t size = zone.uz_bucket_size.load(std::memory_order_relaxed);
  if (contended && size < zone.uz_bucket_size_max)
    zone.uz_bucket_size.store(static_cast<std::uint16_t>(size + 1), std::memory_order_relaxed);
  return lock;
}

// A bucket joins the list, as part of the working set or not.
void zone_put_bucket(uma_zone& zone, uma_bucket* bucket, bool working_set) {
  uma_timer_touch(*zone.vm);
  const auto lock = zone_domain_lock(zone);
  uma_zone_domain& domain = zone.uz_domain[0];
  workset_put(domain, bucket->ub_cnt, working_set);
  bucket->ub_link = domain.uzd_buckets;
  domain.uzd_buckets = bucket;
}

uma_bucket* zone_take_bucket(uma_zone& zone) {
  uma_timer_touch(*zone.vm);
  const auto lock = zone_domain_lock(zone);
  uma_zone_domain& domain = zone.uz_domain[0];
  uma_bucket* bucket = domain.uzd_buckets;
  if (bucket == nullptr) return nullptr;
  domain.uzd_buckets = bucket->ub_link;
  bucket->ub_link = nullptr;
  workset_take(domain, bucket->ub_cnt);
  return bucket;
}

// A new bucket, filled from the keg; or null.
uma_bucket* zone_alloc_bucket(uma_zone& zone, void* udata, int flags) {
  uma_bucket* bucket = bucket_alloc(zone, udata, flags);
  if (bucket == nullptr) return nullptr;
  const int wanted =
      std::min<int>(zone.uz_bucket_size.load(std::memory_order_relaxed), bucket->ub_entries);
  try {
    bucket->ub_cnt = static_cast<std::int16_t>(zone_import(zone, bucket->items(), wanted, flags));
  } catch (...) {  // a panic while asleep
    bucket->ub_cnt = 0;
    throw;
  }
  if (bucket->ub_cnt == 0) {
    zone.uz_fails.fetch_add(1, std::memory_order_relaxed);
    bucket_free(zone, bucket, udata);
    return nullptr;
  }
  return bucket;
}

// Constructor and M_ZERO of an item that leaves the zone. Null: the constructor refused.
void* item_ctor(uma_zone& zone, void* item, void* udata, int flags) {
  if (zone.uz_ctor != nullptr &&
      zone.uz_ctor(item, static_cast<int>(zone.uz_size), udata, flags) != 0) {
    zone.uz_fails.fetch_add(1, std::memory_order_relaxed);
    zone_free_item(zone, item);
    return nullptr;
  }
  if (zone.vm->config.invariants) uma_dbg_alloc(zone, item);
  if ((flags & m::ZERO) != 0) std::memset(item, 0, zone.uz_size);
  return item;
}

}  // namespace

void bucket_drain(uma_zone& zone, uma_bucket* bucket) {
  zone_release(zone, bucket->items(), bucket->ub_cnt);
  bucket->ub_cnt = 0;
}

void zone_free_bucket(uma_zone& zone, uma_bucket* bucket, void* udata, bool working_set) {
  bool too_many = bucket->ub_cnt == 0;
  if (!too_many) {
    const std::lock_guard lock(zone.uz_domain[0].uzd_lock);
    too_many = static_cast<std::uint64_t>(zone.uz_domain[0].uzd_nitems + bucket->ub_cnt) >=
               zone.uz_bucket_max;
  }
  if (too_many) {
    bucket_drain(zone, bucket);
    bucket_free(zone, bucket, udata);
  } else {
    zone_put_bucket(zone, bucket, working_set);
  }
}

bool cache_alloc(uma_zone& zone, void* udata, int flags) {
  uma_cache& cache = zone_cache(zone, curcpu->id);
  if (cache.uc_freebucket != nullptr && cache.uc_freebucket->ub_cnt != 0) {
    uma_bucket* full = cache.uc_freebucket;
    cache.uc_freebucket = cache.unload_alloc();
    cache.load_alloc(full);
    return true;
  }
  if (zone.uz_bucket_size.load(std::memory_order_relaxed) == 0) return false;
  uma_bucket* bucket = cache.unload_alloc();
  section_exit();
  if (bucket != nullptr) bucket_free(zone, bucket, udata);

  bool fresh = false;
  bucket = zone_take_bucket(zone);
  if (bucket == nullptr && !zone.vm->bucketdisable.load(std::memory_order_relaxed)) {
    bucket = zone_alloc_bucket(zone, udata, flags);
    fresh = bucket != nullptr;
  }
  if (bucket == nullptr) {
    section_enter();
    return false;
  }
  // A fresh bucket that goes straight to a CPU; the list counts its own.
  auto count_fresh = [&](std::int64_t items) {
    uma_timer_touch(*zone.vm);
    const std::lock_guard lock(zone.uz_domain[0].uzd_lock);
    zone.uz_domain[0].uzd_imax += items;
  };
  if (fresh) count_fresh(bucket->ub_cnt);
  Cpu& cpu = section_enter();
  uma_cache& now = zone_cache(zone, cpu.id);
  if (now.uc_allocbucket == nullptr) {
    now.uc_flow += bucket->ub_cnt;
    now.load_alloc(bucket);
    return true;
  }
  section_exit();
  if (fresh) count_fresh(-bucket->ub_cnt);
  zone_put_bucket(zone, bucket, !fresh);
  section_enter();
  return true;
}

bool cache_free(uma_zone& zone, void* udata) {
  uma_cache& cache = zone_cache(zone, curcpu->id);
  if (cache.uc_freebucket != nullptr &&
      cache.uc_freebucket->ub_cnt < cache.uc_freebucket->ub_entries) {
    uma_bucket* room = cache.uc_freebucket;
    cache.uc_freebucket = cache.unload_alloc();
    cache.load_alloc(room);
    return true;
  }
  if (zone.uz_bucket_size.load(std::memory_order_relaxed) == 0) return false;
  uma_bucket* full = cache.uc_freebucket;
  cache.uc_freebucket = nullptr;
  if (full != nullptr) cache.uc_flow -= full->ub_cnt;
  section_exit();

  uma_bucket* bucket = bucket_alloc(zone, udata, m::NOWAIT);
  if (full != nullptr) zone_free_bucket(zone, full, udata, true);
  Cpu& cpu = section_enter();
  if (bucket == nullptr) return false;
  uma_cache& now = zone_cache(zone, cpu.id);
  if (now.uc_freebucket == nullptr) {
    now.uc_freebucket = bucket;
    return true;
  }
  section_exit();
  bucket_free(zone, bucket, udata);
  section_enter();
  return true;
}

void* uma_zalloc_arg(uma_zone* zone, void* udata, int flags) {
  if ((zone->uz_flags & UMA_ZFLAG_INTERNAL) != 0) return zone_alloc_item(*zone, udata, flags);
  zone->vm->cpus.bind_any();
  section_enter();
  do {
    uma_cache& cache = zone_cache(*zone, curcpu->id);
    if (cache.top != cache.base) {
      void* item = *--cache.top;
      owner_add(cache.uc_allocs, 1);
      section_exit();
      return item_ctor(*zone, item, udata, flags);
    }
  } while (cache_alloc(*zone, udata, flags));
  section_exit();
  return zone_alloc_item(*zone, udata, flags);
}

void uma_zfree_arg(uma_zone* zone, void* item, void* udata) {
  if (item == nullptr) return;
  zone->vm->cpus.bind_any();
  if (zone->vm->config.invariants) uma_dbg_free(*zone, item);
  if (zone->uz_dtor != nullptr) zone->uz_dtor(item, static_cast<int>(zone->uz_size), udata);
  if ((zone->uz_flags & UMA_ZFLAG_INTERNAL) != 0) {
    zone_free_item(*zone, item);
    return;
  }
  section_enter();
  do {
    uma_cache& cache = zone_cache(*zone, curcpu->id);
    if (cache.top != cache.end) {
      *cache.top++ = item;
      section_exit();
      return;
    }
  } while (cache_free(*zone, udata));
  section_exit();
  zone_free_item(*zone, item);
}

// Straight from a slab, counted by the zone.
void* zone_alloc_item(uma_zone& zone, void* udata, int flags) {
  void* item = nullptr;
  if (zone_import(zone, &item, 1, flags) != 1) {
    zone.uz_fails.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  zone.uz_allocs.fetch_add(1, std::memory_order_relaxed);
  return item_ctor(zone, item, udata, flags);
}

// Straight to its slab; the destructor has run.
void zone_free_item(uma_zone& zone, void* item) {
  zone_release(zone, &item, 1);
  zone.uz_frees.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace dtmalloc
