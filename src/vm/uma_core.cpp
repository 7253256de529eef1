// SPDX-License-Identifier: BSD-2-Clause
// Allocating and freeing items: the CPU's buckets, the zone's list of full ones, the keg.
//
// Counterpart:  sys/vm/uma_core.c (uma_zalloc_arg, uma_zfree_arg, cache_*, zone_*)
// Locking:      a cache belongs to its CPU inside a section; uzd_lock for the bucket list, never in
//               a section. No lock is held while pages are waited for.
// Invariants:   UMA-1 (uma_int.hpp); uc_flow moves with every bucket that comes or goes
// Differs:      DEVIATES: in deterministic runs no lock is ever contended on the host,
// so one
//               counts as contended when another CPU took it less than kContended ago, of virtual
//               time
#include <algorithm>
#include <cstring>

#include "smp/functions.hpp"
#include "smp/section.hpp"
#include "vm/memguard.hpp"
#include "vm/uma_functions.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kContended = 250;  // ns; two operations at their default cost
constexpr void* kNoAddress = nullptr;      // of a CPU's cache: smp/functions.def

// Names an allocation from a zone for the report of a deadlock, unless it is part of another. The
// zone is not destroyed meanwhile.
class ZoneNote {
 public:
  ZoneNote(uma_zone& zone, int flags)
      : zone_(zone),
        note_{"uma_zalloc", zone.uz_size, nullptr, flags, &zone},
        outermost_(current_operation == nullptr) {
    zone_.uz_users.fetch_add(1, std::memory_order_relaxed);
    if (outermost_) current_operation = &note_;
  }
  ~ZoneNote() {
    zone_.uz_users.fetch_sub(1, std::memory_order_relaxed);
    if (outermost_) current_operation = nullptr;
  }
  ZoneNote(const ZoneNote&) = delete;
  ZoneNote& operator=(const ZoneNote&) = delete;

 private:
  uma_zone& zone_;
  OperationNote note_;
  bool outermost_;
};

// Takes a zone-domain's lock. The place where contention is noticed, and uz_bucket_size grows.
std::unique_lock<std::mutex> zone_domain_lock(uma_zone& zone, int domain_id) {
  uma_zone_domain& domain = zone.domain(domain_id);
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

// The domain whose list has the most (least) items; `preferred` if it is one of them.
int zone_domain_highest(uma_zone& zone, int preferred) {
  int best = preferred;
  std::int64_t most = -1;
  for (int i = 0; i < zone.vm->config.domains; ++i) {
    const int id = (preferred + i) % zone.vm->config.domains;
    const std::lock_guard lock(zone.domain(id).uzd_lock);
    if (zone.domain(id).uzd_nitems > most) {
      most = zone.domain(id).uzd_nitems;
      best = id;
    }
  }
  return best;
}

int zone_domain_lowest(uma_zone& zone, int preferred) {
  int best = preferred;
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < zone.vm->config.domains; ++i) {
    const int id = (preferred + i) % zone.vm->config.domains;
    const std::lock_guard lock(zone.domain(id).uzd_lock);
    if (zone.domain(id).uzd_nitems < least) {
      least = zone.domain(id).uzd_nitems;
      best = id;
    }
  }
  return best;
}

// A bucket joins the list, as part of the working set or not; its items go to the slabs if the list
// has enough.
void zone_put_bucket(uma_zone& zone, int domain_id, uma_bucket* bucket, void* udata,
                     bool working_set) {
  auto lock = zone_domain_lock(zone, domain_id);
  uma_zone_domain& domain = zone.domain(domain_id);
  if (static_cast<std::uint64_t>(domain.uzd_nitems + bucket->ub_cnt) >= zone.uz_bucket_max) {
    lock.unlock();
    bucket_drain(zone, bucket);
    bucket_free(zone, bucket, udata);
    return;
  }
  workset_put(domain, bucket->ub_cnt, working_set);
  bucket->ub_link = domain.uzd_buckets;
  domain.uzd_buckets = bucket;
  lock.unlock();
  uma_timer_touch(*zone.vm);
}

uma_bucket* zone_take_bucket(uma_zone& zone, int domain_id) {
  uma_zone_domain& domain = zone.domain(domain_id);
  // No lock for a list that is empty.
  if (std::atomic_ref(domain.uzd_nitems).load(std::memory_order_relaxed) == 0) return nullptr;
  auto lock = zone_domain_lock(zone, domain_id);
  uma_bucket* bucket = domain.uzd_buckets;
  if (bucket == nullptr) return nullptr;
  domain.uzd_buckets = bucket->ub_link;
  bucket->ub_link = nullptr;
  workset_take(domain, bucket->ub_cnt);
  lock.unlock();
  uma_timer_touch(*zone.vm);
  return bucket;
}

uma_bucket* new_bucket(uma_zone& zone, void* udata, int domain, int flags) {
  const ZoneNote note(zone, flags);
  int wanted = zone.uz_bucket_size.load(std::memory_order_relaxed);
  const bool limited = zone.limited();
  if (limited) wanted = zone_alloc_limit(zone, wanted, m::NOWAIT);
  if (wanted == 0) return nullptr;
  uma_bucket* bucket = bucket_alloc(zone, udata, flags);
  int count = 0;
  if (bucket != nullptr) {
    count =
        zone_fetch(zone, bucket->items(), std::min<int>(wanted, bucket->ub_entries), domain, flags);
    bucket->ub_cnt = static_cast<std::int16_t>(count);
  }
  if (limited && count < wanted) zone_free_limit(zone, wanted - count);
  if (bucket != nullptr && count == 0) {
    zone.uz_fails->fetch_add(1, std::memory_order_relaxed);
    bucket_free(zone, bucket, udata);
    return nullptr;
  }
  return bucket;
}

// A new bucket, filled from the keg; or null.
uma_bucket* zone_alloc_bucket(uma_zone& zone, void* udata, int domain, int flags) {
  return in_uma(
      KernelFunction::zone_alloc_bucket, [&] { return new_bucket(zone, udata, domain, flags); },
      &zone, udata, domain, flags);
}

// Constructor and M_ZERO of an item that leaves the zone. Null: the constructor refused. That is a
// failure and no free; the caller counts the allocation, or has counted it.
void* item_ctor(uma_zone& zone, void* item, void* udata, int flags) {
  const bool checked = zone.vm->config.invariants && !uma_dbg_skip(zone, item);
  if (checked && (zone.uz_flags & UMA_ZFLAG_TRASH) != 0)
    trash_check(*zone.vm, item, zone.uz_size, zone.uz_name);
  if (zone.uz_ctor != nullptr &&
      zone.uz_ctor(item, static_cast<int>(zone.uz_size), udata, flags) != 0) {
    zone.uz_fails->fetch_add(1, std::memory_order_relaxed);
    zone_give_back(zone, &item, 1);
    return nullptr;
  }
  if (checked) uma_dbg_alloc(zone, item);
  if ((flags & m::ZERO) != 0) std::memset(item, 0, zone.uz_size);
  return item;
}

// The domain whose buckets an item belongs into; in a zone that is not first-touch any will do.
int item_domain_of(uma_zone& zone, const void* item) {
  return zone.first_touch() && zone.vm->in_arena(item) ? zone.vm->domain_of(item) : 0;
}

// A bucket joins a domain's list (round-robin zones: the shortest), unless that has enough.
void zone_keep_bucket(uma_zone& zone, int domain, uma_bucket* bucket, void* udata,
                      bool working_set) {
  if ((zone.uz_flags & UMA_ZONE_ROUNDROBIN) != 0) domain = zone_domain_lowest(zone, domain);
  zone_put_bucket(zone, domain, bucket, udata, working_set);
}

// Items of several domains are sorted into a bucket of each domain; those that fill join their
// domain's list. Without a bucket to sort into, the rest goes to the slabs.
void zone_free_cross(uma_zone& zone, uma_bucket* bucket, void* udata, bool working_set) {
  std::vector<uma_bucket*> full;
  while (bucket->ub_cnt != 0) {
    void* item = bucket->items()[bucket->ub_cnt - 1];
    uma_zone_domain& domain = zone.domain(item_domain_of(zone, item));
    std::unique_lock lock(zone.uz_cross_lock);
    if (domain.uzd_cross == nullptr) {
      // A bucket zone may have foreign items of its own.
      lock.unlock();
      uma_bucket* fresh = bucket_alloc(zone, udata, m::NOWAIT);
      if (fresh == nullptr) break;
      lock.lock();
      if (domain.uzd_cross == nullptr) std::swap(fresh, domain.uzd_cross);
      if (fresh != nullptr) {  // somebody else was faster
        lock.unlock();
        bucket_free(zone, fresh, udata);
        continue;
      }
    }
    uma_bucket* cross = domain.uzd_cross;
    cross->items()[cross->ub_cnt++] = item;
    --bucket->ub_cnt;
    if (cross->ub_cnt == cross->ub_entries) {
      full.push_back(cross);
      domain.uzd_cross = nullptr;
    }
  }
  uma_timer_touch(*zone.vm);
  bucket_drain(zone, bucket);
  bucket_free(zone, bucket, udata);
  for (uma_bucket* cross : full)
    zone_keep_bucket(zone, item_domain_of(zone, cross->items()[0]), cross, udata, working_set);
}

}  // namespace

void bucket_drain(uma_zone& zone, uma_bucket* bucket) {
  in_uma(
      KernelFunction::bucket_drain,
      [&] {
        zone_give_back(zone, bucket->items(), bucket->ub_cnt);
        bucket->ub_cnt = 0;
      },
      &zone, bucket);
}

void zone_free_bucket(uma_zone& zone, uma_bucket* bucket, void* udata, bool working_set,
                      bool mixed) {
  if (bucket->ub_cnt == 0)
    bucket_free(zone, bucket, udata);
  else if (mixed && zone.vm->config.domains > 2)
    zone_free_cross(zone, bucket, udata, working_set);
  else
    zone_keep_bucket(zone, item_domain_of(zone, bucket->items()[0]), bucket, udata, working_set);
}

static bool refill(uma_zone& zone, void* udata, int flags) {
  uma_cache& cache = zone_cache(zone, curcpu->id);
  if (cache.swap_to_alloc()) return true;
  uma_bucket* bucket = cache.unload_alloc();
  section_exit();
  if (bucket != nullptr) bucket_free(zone, bucket, udata);

  const bool round_robin = (zone.uz_flags & UMA_ZONE_ROUNDROBIN) != 0;
  int domain = curcpu->domain;
  if (round_robin) domain = zone_domain_highest(zone, domain);
  bool fresh = false;
  bucket = zone_take_bucket(zone, domain);
  if (bucket == nullptr && zone.uz_bucket_size.load(std::memory_order_relaxed) != 0 &&
      !zone.vm->bucketdisable.load(std::memory_order_relaxed)) {
    bucket = zone_alloc_bucket(zone, udata, round_robin ? UMA_ANYDOMAIN : domain, flags);
    fresh = bucket != nullptr;
  }
  if (bucket == nullptr) {
    section_enter();
    return false;
  }
  // A fresh bucket that goes straight to a CPU; the list counts its own.
  auto count_fresh = [&](std::int64_t items) {
    {
      const std::lock_guard lock(zone.domain(domain).uzd_lock);
      zone.domain(domain).uzd_imax += items;
    }
    uma_timer_touch(*zone.vm);
  };
  if (fresh) count_fresh(bucket->ub_cnt);
  Cpu& cpu = section_enter();
  uma_cache& now = zone_cache(zone, cpu.id);
  if (now.uc_allocbucket == nullptr && (!zone.first_touch() || cpu.domain == domain)) {
    now.uc_flow += bucket->ub_cnt;
    now.load_alloc(bucket);
    return true;
  }
  section_exit();
  if (fresh) count_fresh(-bucket->ub_cnt);
  zone_put_bucket(zone, domain, bucket, udata, !fresh);
  section_enter();
  return true;
}

bool cache_alloc(uma_zone& zone, void* udata, int flags) {
  return in_uma(
      KernelFunction::cache_alloc, [&] { return refill(zone, udata, flags); }, &zone, kNoAddress,
      udata, flags);
}

static bool make_room(uma_zone& zone, void* udata, int item_domain) {
  Cpu& was = *curcpu;
  uma_cache& cache = zone_cache(zone, was.id);
  const bool foreign = zone.first_touch() && was.domain != item_domain;
  if (!foreign && cache.swap_to_free()) return true;
  if (zone.uz_bucket_size.load(std::memory_order_relaxed) == 0) return false;
  uma_bucket* full = std::exchange(foreign ? cache.uc_crossbucket : cache.uc_freebucket, nullptr);
  if (full != nullptr) {
    cache.uc_flow -= full->ub_cnt;
    if (foreign)
      zone.uz_xdomain->fetch_add(static_cast<std::uint64_t>(full->ub_cnt),
                                 std::memory_order_relaxed);
  }
  section_exit();

  uma_bucket* bucket = bucket_alloc(zone, udata, m::NOWAIT);
  if (full != nullptr) zone_free_bucket(zone, full, udata, true, foreign);
  Cpu& cpu = section_enter();
  if (bucket == nullptr) return false;
  uma_cache& now = zone_cache(zone, cpu.id);
  if (zone.first_touch() && cpu.domain != item_domain && now.uc_crossbucket == nullptr) {
    now.uc_crossbucket = bucket;
    return true;
  }
  if (now.uc_freebucket == nullptr) {
    now.uc_freebucket = bucket;
    return true;
  }
  section_exit();
  bucket_free(zone, bucket, udata);
  section_enter();
  return true;
}

bool cache_free(uma_zone& zone, void* udata, int item_domain) {
  return in_uma(
      KernelFunction::cache_free, [&] { return make_room(zone, udata, item_domain); }, &zone,
      kNoAddress, udata, item_domain);
}

static void* zalloc_arg(uma_zone* zone, void* udata, int flags) {
  if (zone->vm->config.invariants) uma_zalloc_debug(*zone, flags);
  if (Memguard* memguard = zone->vm->memguard.get()) {
    void* item = nullptr;
    if (memguard->zalloc(*zone, &item, udata, flags)) return item;
  }
  if ((zone->uz_flags & UMA_ZFLAG_INTERNAL) == 0) {
    section_enter();
    do {
      uma_cache& cache = zone_cache(*zone, curcpu->id);
      if (cache.top != cache.base) {
        void* item = *--cache.top;
        owner_add(cache.uc_allocs, 1);
        section_exit();
        item = item_ctor(*zone, item, udata, flags);
        // The CPU has counted it, and no free will match.
        if (item == nullptr) zone->uz_refused.fetch_add(1, std::memory_order_relaxed);
        return item;
      }
    } while (cache_alloc(*zone, udata, flags));
    section_exit();
  }
  return zone_alloc_item(*zone, udata, zone->first_touch() ? curcpu->domain : UMA_ANYDOMAIN, flags);
}

void* uma_zalloc_arg(uma_zone* zone, void* udata, int flags) {
  zone->vm->cpus.bind_any();
  return in_function(
      KernelFunction::uma_zalloc_arg, [&] { return zalloc_arg(zone, udata, flags); }, zone, udata,
      flags);
}

void* uma_zalloc_domain(uma_zone* zone, void* udata, int domain, int flags) {
  zone->vm->cpus.bind_any();
  return in_function(
      KernelFunction::uma_zalloc_domain,
      [&]() -> void* {
        Vm& vm = *zone->vm;
        if (vm.config.domains == 1) return uma_zalloc_arg(zone, udata, flags);
        vm.cpus.bind_any();
        if (vm.config.invariants) {
          if (!zone->first_touch())
            vm.cpus.panic("uma_zalloc_domain: called with non-FIRSTTOUCH zone.");
          uma_zalloc_debug(*zone, flags);
        }
        if (vm.memguard != nullptr) {
          void* guarded = nullptr;
          if (vm.memguard->zalloc(*zone, &guarded, udata, flags)) return guarded;
        }
        uma_bucket* bucket = zone_take_bucket(*zone, domain);
        if (bucket == nullptr) return zone_alloc_item(*zone, udata, domain, flags);
        void* item = bucket->items()[--bucket->ub_cnt];
        // DEVIATES: an emptied bucket goes back to its zone: in the list it would pass for a full
        // one.
        if (bucket->ub_cnt != 0)
          zone_put_bucket(*zone, domain, bucket, udata, true);
        else
          bucket_free(*zone, bucket, udata);
        item = item_ctor(*zone, item, udata, flags);
        if (item != nullptr) zone->uz_allocs->fetch_add(1, std::memory_order_relaxed);
        return item;
      },
      zone, udata, domain, flags);
}

static void item_dtor(uma_zone& zone, void* item, void* udata) {
  const bool checked = zone.vm->config.invariants && !uma_dbg_skip(zone, item);
  if (checked) uma_dbg_free(zone, item);
  if (zone.uz_dtor != nullptr) zone.uz_dtor(item, static_cast<int>(zone.uz_size), udata);
  if (checked && (zone.uz_flags & UMA_ZFLAG_TRASH) != 0) trash_fill(item, zone.uz_size);
}

static void zfree_arg(uma_zone* zone, void* item, void* udata) {
  Vm& vm = *zone->vm;
  if (vm.config.invariants) uma_zfree_debug(*zone);
  if (item == nullptr) return;
  if (vm.memguard != nullptr && vm.memguard->zfree(*zone, item, udata)) return;
  item_dtor(*zone, item, udata);
  // Who waits for the limit is not kept waiting by a cache.
  if ((zone->uz_flags & UMA_ZFLAG_INTERNAL) != 0 || uma_zone_exhausted(zone)) {
    zone_free_item(*zone, item, udata, SKIP_DTOR);
    return;
  }
  const int item_domain = item_domain_of(*zone, item);
  section_enter();
  do {
    Cpu& cpu = *curcpu;
    uma_cache& cache = zone_cache(*zone, cpu.id);
    if (zone->first_touch() && cpu.domain != item_domain) {
      uma_bucket* cross = cache.uc_crossbucket;
      if (cross != nullptr && cross->ub_cnt < cross->ub_entries) {
        cross->items()[cross->ub_cnt++] = item;
        section_exit();
        return;
      }
    } else if (cache.top != cache.end) {
      *cache.top++ = item;
      section_exit();
      return;
    }
  } while (cache_free(*zone, udata, item_domain));
  section_exit();
  zone_free_item(*zone, item, udata, SKIP_DTOR);
}

void uma_zfree_arg(uma_zone* zone, void* item, void* udata) {
  zone->vm->cpus.bind_any();
  in_function(
      KernelFunction::uma_zfree_arg, [&] { return zfree_arg(zone, item, udata); }, zone, item,
      udata);
}

static void* alloc_item(uma_zone& zone, void* udata, int domain, int flags) {
  if ((zone.uz_flags & UMA_ZONE_ROUNDROBIN) != 0) domain = UMA_ANYDOMAIN;
  const ZoneNote note(zone, flags);
  const bool limited = zone.limited();
  void* item = nullptr;
  const bool granted = !limited || zone_alloc_limit(zone, 1, flags) == 1;
  if (!granted || zone_fetch(zone, &item, 1, domain, flags) != 1) {
    if (limited && granted) zone_free_limit(zone, 1);
    zone.uz_fails->fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  item = item_ctor(zone, item, udata, flags);
  if (item != nullptr) zone.uz_allocs->fetch_add(1, std::memory_order_relaxed);
  return item;
}

// Straight from a slab, counted by the zone.
void* zone_alloc_item(uma_zone& zone, void* udata, int domain, int flags) {
  return in_uma(
      KernelFunction::zone_alloc_item, [&] { return alloc_item(zone, udata, domain, flags); },
      &zone, udata, domain, flags);
}

// Straight to its slab.
void zone_free_item(uma_zone& zone, void* item, void* udata, zfreeskip skip) {
  in_uma(
      KernelFunction::zone_free_item,
      [&] {
        if (skip < SKIP_DTOR) item_dtor(zone, item, udata);
        zone_give_back(zone, &item, 1);
        zone.uz_frees->fetch_add(1, std::memory_order_relaxed);
      },
      &zone, item, udata, static_cast<int>(skip));
}

}  // namespace dtmalloc
