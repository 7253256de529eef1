// SPDX-License-Identifier: BSD-2-Clause
// Walkers: each equation of vm.hpp and uma_int.hpp, checked over the live structures.
//
// Locking:      takes the locks of what it walks; the machine should stand still for the sums
#include <algorithm>
#include <bit>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

std::string broken(const char* law, const std::string& what) {
  return std::string(law) + ": " + what;
}

std::string check_area(Vm& vm, VmDomain& domain) {
  const std::lock_guard lock(domain.page_mutex);
  std::uint64_t in_runs = 0, end = 0;
  bool first_run = true;
  for (const auto& [first, pages] : domain.runs) {
    if (pages == 0) return broken("VM-1", "an empty run");
    if (!first_run && first <= end) return broken("VM-1", "two free runs touch or overlap");
    if (domain.fit.count({pages, first}) == 0)
      return broken("VM-1", "a run is missing from the index");
    if (first < domain.first_page) return broken("VM-2", "a run begins outside its domain");
    for (std::uint64_t page = first; page < first + pages && page < first + 4096; ++page)
      if (vm.page_slab[page].load(std::memory_order_relaxed) != 0)
        return broken("VM-2", "a free page is in the page map");
    in_runs += pages;
    end = first + pages;
    first_run = false;
  }
  if (domain.fit.size() != domain.runs.size()) return broken("VM-1", "the index has other runs");
  if (end > domain.first_page + vm.area_pages)
    return broken("VM-2", "a run ends outside its domain");
  const std::uint64_t out = vm.area_pages - in_runs;
  if (domain.free_count.load(std::memory_order_relaxed) + out != domain.page_count)
    return broken("VM-3", "free pages and pages handed out are not all pages");
  return {};
}

// The lists of one domain of a keg.
std::string check_slabs(uma_keg& keg, int id) {
  uma_domain& domain = keg.domain(id);
  Vm& vm = *keg.vm;
  const std::lock_guard lock(domain.ud_lock);
  std::uint64_t slabs = 0, free_items = 0, free_slabs = 0;
  for (std::uint32_t list = 0; list < 3; ++list) {
    const uma_slab* before = nullptr;
    for (uma_slab* slab = domain.lists[list]; slab != nullptr; slab = slab->us_next) {
      if (slab->us_prev != before)
        return broken("UMA-3", std::string(keg.uk_name) + ": a list is torn");
      if (slab->us_list != list)
        return broken("UMA-3", std::string(keg.uk_name) + ": a slab on another list");
      std::uint32_t bits = 0;
      for (std::uint32_t word = 0; word < (keg.uk_ipers + 63u) / 64; ++word)
        bits += static_cast<std::uint32_t>(std::popcount(slab->free_bits()[word]));
      if (bits != slab->us_freecount)
        return broken("UMA-2", std::string(keg.uk_name) + ": us_freecount");
      const bool fits = list == kFull   ? bits == 0
                        : list == kFree ? bits == keg.uk_ipers
                                        : bits != 0;
      if (!fits) return broken("UMA-3", std::string(keg.uk_name) + ": a slab on the wrong list");
      const std::uint64_t first = vm.page_of(slab->us_data);
      if (slab->us_domain != id || vm.domain_of_page(first) != id)
        return broken("UMA-5", std::string(keg.uk_name) + ": a slab of another domain");
      for (std::uint64_t page = first; page < first + keg.uk_ppera; ++page) {
        if (vm.page_slab[page].load() != reinterpret_cast<std::uintptr_t>(slab))
          return broken("UMA-3", std::string(keg.uk_name) + ": the page map does not know a slab");
        for (int view = 0; view < vm.config.domains; ++view)
          if (vm.page_zone[static_cast<std::size_t>(view)][page] !=
              (view == id ? keg.page_zone : 0))
            return broken("VM-4",
                          std::string(keg.uk_name) + ": a domain's page map is wrong about a slab");
      }
      ++slabs;
      free_items += bits;
      if (list == kFree) ++free_slabs;
      before = slab;
    }
  }
  if (slabs * keg.uk_ppera != domain.ud_pages)
    return broken("UMA-4", std::string(keg.uk_name) + ": ud_pages");
  if (free_items != domain.ud_free_items)
    return broken("UMA-4", std::string(keg.uk_name) + ": ud_free_items");
  if (free_slabs != domain.ud_free_slabs)
    return broken("UMA-4", std::string(keg.uk_name) + ": ud_free_slabs");
  return {};
}

// Whether a first-touch zone has the items in the domain where they are.
bool all_in(uma_zone& zone, void* const* items, std::int64_t count, int domain) {
  if (!zone.first_touch()) return true;
  return std::all_of(items, items + count,
                     [&](void* item) { return zone.vm->domain_of(item) == domain; });
}

std::string check_bucket(uma_zone& zone, uma_bucket* bucket, int domain) {
  if (bucket->ub_cnt <= 0 || bucket->ub_cnt > bucket->ub_entries)
    return broken("UMA-4", std::string(zone.uz_name) + ": a listed bucket with a strange count");
  if (!all_in(zone, bucket->items(), bucket->ub_cnt, domain))
    return broken("UMA-5",
                  std::string(zone.uz_name) + ": a listed bucket with an item of another domain");
  return {};
}

std::string check_cache(uma_zone& zone, uma_cache& cache, int domain) {
  const uma_bucket* free = cache.uc_freebucket;
  const uma_bucket* cross = cache.uc_crossbucket;
  bool home = all_in(zone, cache.base, cache.top - cache.base, domain);
  if (free != nullptr)
    home = home && all_in(zone, cache.uc_freebucket->items(), free->ub_cnt, domain);
  for (int i = 0; cross != nullptr && i < cross->ub_cnt; ++i)
    home = home && zone.vm->domain_of(cache.uc_crossbucket->items()[i]) != domain;
  return home ? ""
              : broken("UMA-5",
                       std::string(zone.uz_name) + ": a CPU has an item in the wrong bucket");
}

}  // namespace

std::string check_arena(Vm& vm) {
  for (int id = 0; id < vm.config.domains; ++id)
    if (std::string what = check_area(vm, vm.domains[static_cast<std::size_t>(id)]); !what.empty())
      return what;
  return {};
}

std::string check_keg(uma_keg& keg) {
  for (int id = 0; id < keg.vm->config.domains; ++id)
    if (std::string what = check_slabs(keg, id); !what.empty()) return what;
  return {};
}

std::string check_zone_lists(uma_zone& zone) {
  for (int id = 0; id < zone.vm->config.domains; ++id) {
    uma_zone_domain& domain = zone.domain(id);
    const std::lock_guard lock(domain.uzd_lock);
    std::int64_t items = 0;
    for (uma_bucket* bucket = domain.uzd_buckets; bucket != nullptr; bucket = bucket->ub_link) {
      if (std::string what = check_bucket(zone, bucket, id); !what.empty()) return what;
      items += bucket->ub_cnt;
    }
    if (items != domain.uzd_nitems)
      return broken("UMA-4", std::string(zone.uz_name) + ": uzd_nitems");
  }
  return {};
}

// Items that a zone has taken from its source: live, with CPUs, in its lists.
static std::uint64_t items_out(uma_zone& zone, std::string& text) {
  const ZoneStats stats = zone_stats(zone);
  const std::uint64_t live = stats.allocs - stats.frees - zone.uz_refused.load();
  std::uint64_t cached = stats.bucket_cache_items;
  for (const ZoneStats::Cpu& cpu : stats.cpus) cached += cpu.items;
  for (int id = 0; id < zone.vm->config.domains; ++id) {
    const std::lock_guard lock(zone.uz_cross_lock);
    if (const uma_bucket* cross = zone.domain(id).uzd_cross)
      cached += static_cast<std::uint64_t>(cross->ub_cnt);
  }
  text += ", " + std::to_string(live) + " live and " + std::to_string(cached) + " cached by " +
          zone.uz_name;
  return live + cached;
}

std::string check_zone(uma_zone& zone) {
  Vm& vm = *zone.vm;
  if (std::string what = check_zone_lists(zone); !what.empty()) return what;
  std::string what;
  for (int id = 0; id < vm.cpus.count() && what.empty(); ++id)
    if (uma_cache* cache = zone.cache_or_null(id)) {
      Cpu& cpu = vm.cpus.cpu(id);
      vm.cpus.run_on_cpu(cpu, [&] { what = check_cache(zone, *cache, cpu.domain); });
    }
  if (!what.empty()) return what;
  if (zone.uz_keg == nullptr || zone.uz_keg->zone != &zone) return {};
  uma_keg& keg = *zone.uz_keg;
  if (what = check_keg(keg); !what.empty()) return what;
  std::uint64_t items = 0, rest = 0;
  for (int id = 0; id < vm.config.domains; ++id) {
    items += keg.domain(id).ud_pages / keg.uk_ppera * keg.uk_ipers;
    rest += keg.domain(id).ud_free_items;
  }
  std::string parts = std::to_string(rest) + " in slabs";
  for (uma_zone* sharing : zone_list(vm))
    if (sharing->uz_keg == &keg) rest += items_out(*sharing, parts);
  if (items != rest)
    return broken("UMA-1",
                  std::string(zone.uz_name) + ": " + std::to_string(items) + " items, " + parts);
  return {};
}

std::string check_vm(Vm& vm) {
  if (std::string what = check_arena(vm); !what.empty()) return what;
  for (uma_zone* zone : zone_list(vm))
    if (std::string what = check_zone(*zone); !what.empty()) return what;
  return {};
}

}  // namespace dtmalloc
