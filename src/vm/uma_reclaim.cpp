// SPDX-License-Identifier: BSD-2-Clause
// Giving memory back: full buckets to slabs, empty slabs to the supply of pages. Slabs return by
// no other way.
//
// Counterpart:  sys/vm/uma_core.c (zone_reclaim, bucket_cache_reclaim, keg_drain, uma_reclaim)
// Locking:      uzd_lock, ud_lock, one at a time; fini runs with none. ZonesInUse keeps the zones.
// Differs:      DEVIATES: what DRAIN_CPU takes from another CPU is given back by the CPU of the
//               caller, so the empty buckets land in its caches: a thread is bound to one CPU
#include <utility>

#include "smp/functions.hpp"
#include "sys/format.hpp"
#include "vm/uma_functions.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

// spec/malloc9.md 5.10: idle for a quarter of an hour.
constexpr std::uint32_t kIdleLooks = 900 / (UMA_TIMEOUT / 1'000'000'000);

bool drain_domain(uma_zone& zone, std::size_t d, Reclaim how) {
  uma_zone_domain& domain = zone.uz_domain[d];
  bool done = false;
  uma_bucket* cross;  // it is not full
  {
    const std::lock_guard sorting(zone.uz_cross_lock);
    cross = std::exchange(domain.uzd_cross, nullptr);
  }
  if (cross != nullptr) {
    bucket_drain(zone, cross);
    bucket_free(zone, cross, nullptr);
  }
  std::unique_lock lock(domain.uzd_lock);
  workset_update(domain);
  std::int64_t target = 0;
  if (how == Reclaim::trim) {
    target = domain.uzd_wss;
  } else if (how == Reclaim::timer) {
    if (domain.uzd_timin <= kIdleLooks) return false;
    target = domain.uzd_nitems - domain.uzd_limin / 4;
  }
  while (uma_bucket* bucket = domain.uzd_buckets) {
    if (domain.uzd_nitems < target + bucket->ub_cnt) break;
    domain.uzd_buckets = bucket->ub_link;
    bucket->ub_link = nullptr;
    workset_reclaim(domain, bucket->ub_cnt);
    lock.unlock();
    bucket_drain(zone, bucket);
    bucket_free(zone, bucket, nullptr);
    done = true;
    lock.lock();
  }
  return done;
}

bool in_domain(int domain, std::size_t d) {
  return domain == UMA_ANYDOMAIN || static_cast<std::size_t>(domain) == d;
}

// Buckets are not wanted while pages are short.
void bucket_enable(Vm& vm) { vm.bucketdisable.store(vm.page_count_min()); }

void bucket_shrink(uma_zone& zone, std::uint16_t to) {
  if (to >= zone.uz_bucket_size_min) zone.uz_bucket_size.store(to, std::memory_order_relaxed);
}

// What one CPU holds goes to the zone's list, and is no sign of demand.
void drain_cpu(uma_zone& zone, int id) {
  if ((zone.uz_flags & UMA_ZFLAG_INTERNAL) != 0) return;
  uma_cache* cache = zone.cache_or_null(id);
  if (cache == nullptr) return;
  Vm& vm = *zone.vm;
  std::array<uma_bucket*, 3> taken{};
  vm.cpus.run_on_cpu(vm.cpus.cpu(id), [&] { taken = cache->unload(); });
  for (uma_bucket* bucket : taken)
    if (bucket != nullptr) zone_free_bucket(zone, bucket, nullptr, false, bucket == taken.back());
}

void drain_cpus(Vm& vm, const std::vector<uma_zone*>& zones) {
  for (uma_zone* zone : zones)
    if ((zone->uz_flags & UMA_ZFLAG_INTERNAL) == 0)
      bucket_shrink(*zone, static_cast<std::uint16_t>(
                               (zone->uz_bucket_size_min + zone->uz_bucket_size.load()) / 2));
  for (int id = 0; id < vm.cpus.count(); ++id)
    for (auto zone = zones.rbegin(); zone != zones.rend(); ++zone) drain_cpu(**zone, id);
}

[[noreturn]] void unhandled(Vm& vm, int req) {
  vm.cpus.panic(kernel_format(vm.addresses, "unhandled reclamation request %d", req));
}

}  // namespace

ZonesInUse::ZonesInUse(Vm& machine) : vm(machine) {
  const std::lock_guard lock(vm.zones_mutex);
  for (const auto& zone : vm.zones) {
    if (!zone->listed) continue;
    ++zone->uz_reclaimers;
    zones.push_back(zone.get());
  }
}

ZonesInUse::~ZonesInUse() {
  const std::lock_guard lock(vm.zones_mutex);
  for (uma_zone* zone : zones) --zone->uz_reclaimers;
}

void keg_free_slab(uma_keg& keg, uma_slab* slab, std::uint32_t items) {
  Vm& vm = *keg.vm;
  for (std::uint32_t i = items; i-- > 0;) {
    void* item = slab->us_data + i * keg.uk_rsize;
    if (keg.trash && !uma_dbg_kskip(keg, item)) trash_check(vm, item, keg.uk_size, "");
    if (keg.uk_fini != nullptr) keg.uk_fini(item, static_cast<int>(keg.uk_size));
  }
  const std::uint64_t first = vm.page_of(slab->us_data);
  for (std::uint64_t page = first; page < first + keg.uk_ppera; ++page) {
    vm.page_slab[page].store(0, std::memory_order_release);
    vm.set_page_zone(page, 0);
  }
  void* header = slab->us_header;
  {
    const std::lock_guard lock(keg.blocks_mutex);
    slab->us_next = keg.spare_slabs;
    keg.spare_slabs = slab;
  }
  if (header != nullptr) zone_free_item(*slab_zone(keg), header, nullptr, SKIP_NONE);
  vm.lowmem.slab_frees.fetch_add(1);
  keg_pages_free(keg, first);
  vm.kmem_total_sub(keg.uk_ppera * kPageBytes);
}

static void drain_keg(uma_keg& keg, int domain) {
  if ((keg.uk_flags & UMA_ZONE_NOFREE) != 0) return;
  for (std::size_t d = 0; d < keg.domains(); ++d) {
    if (!in_domain(domain, d)) continue;
    uma_domain& of = keg.uk_domain[d];
    uma_slab* gone = nullptr;
    {
      const std::lock_guard lock(of.ud_lock);
      // The reserve may lie in partial slabs; whole ones are kept for the rest of it.
      const std::uint64_t partial = of.ud_free_items - of.ud_free_slabs * keg.uk_ipers;
      std::uint64_t kept = 0;
      if (partial < keg.uk_reserve)
        kept = (keg.uk_reserve - partial + keg.uk_ipers - 1) / keg.uk_ipers;
      while (of.ud_free_slabs > kept) {
        uma_slab* slab = of.lists[kFree];
        of.lists[kFree] = slab->us_next;
        if (slab->us_next != nullptr) slab->us_next->us_prev = nullptr;
        --of.ud_free_slabs;
        of.ud_free_items -= keg.uk_ipers;
        of.ud_pages -= keg.uk_ppera;
        slab->us_next = gone;
        gone = slab;
      }
    }
    while (gone != nullptr) keg_free_slab(keg, std::exchange(gone, gone->us_next), keg.uk_ipers);
  }
}

void keg_drain(uma_keg& keg, int domain) {
  in_uma(
      KernelFunction::keg_drain, [&] { drain_keg(keg, domain); }, &keg, domain);
}

bool zone_reclaim(uma_zone& zone, int domain, Reclaim how) {
  // The timer leaves the bucket size alone.
  if (how != Reclaim::timer) {
    const std::uint16_t size = zone.uz_bucket_size.load(std::memory_order_relaxed);
    if (size > zone.uz_bucket_size_min) bucket_shrink(zone, static_cast<std::uint16_t>(size - 1));
  }
  // A round-robin zone's lists hold items of any domain: slabs are looked at when all are through.
  const bool mixed = (zone.uz_flags & UMA_ZONE_ROUNDROBIN) != 0 && how != Reclaim::timer;
  bool done = false;
  for (std::size_t d = 0; d < zone.domains(); ++d)
    if (mixed || in_domain(domain, d)) done = drain_domain(zone, d, how) || done;
  if (zone.uz_keg != nullptr && (how != Reclaim::timer || done)) keg_drain(*zone.uz_keg, domain);
  return done;
}

bool uma_timeout_pass(Vm& vm) {
  bucket_enable(vm);
  const ZonesInUse in_use(vm);
  bool busy = false;
  for (auto it = in_use.zones.rbegin(); it != in_use.zones.rend(); ++it) {
    uma_zone& zone = **it;
    if (!zone.timed()) continue;
    for (std::size_t d = 0; d < zone.domains(); ++d) {
      uma_zone_domain& domain = zone.uz_domain[d];
      const auto counters = [&] {
        const std::lock_guard lock(domain.uzd_lock);
        return std::array{domain.uzd_nitems,
                          domain.uzd_imax,
                          domain.uzd_imin,
                          domain.uzd_bimin,
                          domain.uzd_wss,
                          domain.uzd_limin,
                          std::int64_t{domain.uzd_nitems != 0 && domain.uzd_timin <= kIdleLooks}};
      };
      const auto before = counters();
      zone_reclaim(zone, static_cast<int>(d), Reclaim::timer);
      const auto after = counters();
      busy = busy || before != after || after.back() != 0;
    }
  }
  return busy;
}

void uma_zone_reclaim_domain(uma_zone* zone, int req, int domain) {
  in_function(
      KernelFunction::uma_zone_reclaim_domain,
      [&] {
        switch (req) {
          case UMA_RECLAIM_TRIM:
            zone_reclaim(*zone, domain, Reclaim::trim);
            break;
          case UMA_RECLAIM_DRAIN_CPU:
            drain_cpus(*zone->vm, {zone});
            [[fallthrough]];
          case UMA_RECLAIM_DRAIN:
            zone_reclaim(*zone, domain, Reclaim::drain);
            break;
          default:
            unhandled(*zone->vm, req);
        }
      },
      zone, req, domain);
}

void uma_zone_reclaim(uma_zone* zone, int req) {
  zone->vm->cpus.bind_any();
  in_function(
      KernelFunction::uma_zone_reclaim,
      [&] {
        zone->vm->cpus.bind_any();
        uma_zone_reclaim_domain(zone, req, UMA_ANYDOMAIN);
      },
      zone, req);
}

void uma_reclaim_domain(Vm& vm, int req, int domain) {
  vm.cpus.bind_any();
  in_function(
      KernelFunction::uma_reclaim_domain,
      [&] {
        vm.cpus.bind_any();
        bucket_enable(vm);
        const ZonesInUse in_use(vm);
        const auto each = [&](Reclaim how) {
          for (auto it = in_use.zones.rbegin(); it != in_use.zones.rend(); ++it) {
            uma_zone& zone = **it;
            if (how == Reclaim::trim ? !zone.timed() : (zone.uz_flags & UMA_ZONE_UNMANAGED) != 0)
              continue;
            zone_reclaim(zone, domain, how);
          }
        };
        switch (req) {
          case UMA_RECLAIM_TRIM:
            each(Reclaim::trim);
            break;
          case UMA_RECLAIM_DRAIN:
            each(Reclaim::drain);
            break;
          case UMA_RECLAIM_DRAIN_CPU:
            each(Reclaim::drain);
            drain_cpus(vm, in_use.zones);
            each(Reclaim::drain);
            break;
          default:
            unhandled(vm, req);
        }
        // The others gave headers and buckets back after these had their turn.
        for (uma_zone* zone : vm.slab_zones)
          if (zone != nullptr) zone_reclaim(*zone, domain, Reclaim::drain);
        for (uma_zone* zone : vm.bucket_zones)
          if (zone != nullptr) zone_reclaim(*zone, domain, Reclaim::drain);
      },
      req, domain);
}

void uma_reclaim(Vm& vm, int req) {
  vm.cpus.bind_any();
  in_function(
      KernelFunction::uma_reclaim, [&] { uma_reclaim_domain(vm, req, UMA_ANYDOMAIN); }, req);
}

}  // namespace dtmalloc
