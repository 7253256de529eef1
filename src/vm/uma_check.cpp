// SPDX-License-Identifier: BSD-2-Clause
// Walkers: each equation of vm.hpp and uma_int.hpp, checked over the live structures.
//
// Locking:      takes the locks of what it walks; the machine should stand still for the sums
#include <bit>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

std::string broken(const char* law, const std::string& what) {
  return std::string(law) + ": " + what;
}

}  // namespace

std::string check_arena(Vm& vm) {
  const std::lock_guard lock(vm.page_mutex);
  std::uint64_t in_runs = 0, end = 0;
  bool first_run = true;
  for (const auto& [first, pages] : vm.runs) {
    if (pages == 0) return broken("VM-1", "an empty run");
    if (!first_run && first <= end) return broken("VM-1", "two free runs touch or overlap");
    if (vm.fit.count({pages, first}) == 0) return broken("VM-1", "a run is missing from the index");
    for (std::uint64_t page = first; page < first + pages && page < first + 4096; ++page)
      if (vm.page_slab[page].load(std::memory_order_relaxed) != 0)
        return broken("VM-2", "a free page is in the page map");
    in_runs += pages;
    end = first + pages;
    first_run = false;
  }
  if (vm.fit.size() != vm.runs.size()) return broken("VM-1", "the index has other runs");
  if (end > vm.arena_pages) return broken("VM-2", "a run ends outside the arena");
  const std::uint64_t out = vm.arena_pages - in_runs;
  if (vm.free_count.load(std::memory_order_relaxed) + out != vm.page_count)
    return broken("VM-3", "free pages and pages handed out are not all pages");
  return {};
}

std::string check_keg(uma_keg& keg) {
  const std::lock_guard lock(keg.uk_domain[0].ud_lock);
  uma_domain& domain = keg.uk_domain[0];
  std::uint64_t slabs = 0, free_items = 0, free_slabs = 0;
  for (std::uint32_t list = 0; list < 3; ++list) {
    const uma_slab* before = nullptr;
    for (uma_slab* slab = domain.lists[list]; slab != nullptr; slab = slab->us_next) {
      if (slab->us_prev != before) return broken("UMA-3", keg.uk_name + ": a list is torn");
      if (slab->us_list != list) return broken("UMA-3", keg.uk_name + ": a slab on another list");
      std::uint32_t bits = 0;
      for (std::uint32_t word = 0; word < (keg.uk_ipers + 63u) / 64; ++word)
        bits += static_cast<std::uint32_t>(std::popcount(slab->free_bits()[word]));
      if (bits != slab->us_freecount) return broken("UMA-2", keg.uk_name + ": us_freecount");
      const bool fits = list == kFull   ? bits == 0
                        : list == kFree ? bits == keg.uk_ipers
                                        : bits != 0;
      if (!fits) return broken("UMA-3", keg.uk_name + ": a slab on the wrong list");
      const std::uint64_t first = keg.vm->page_of(slab->us_data);
      for (std::uint64_t page = first; page < first + keg.uk_ppera; ++page)
        if (keg.vm->page_slab[page].load() != reinterpret_cast<std::uintptr_t>(slab) ||
            keg.vm->page_zone[page] != keg.page_zone)
          return broken("UMA-3", keg.uk_name + ": the page map does not know a slab");
      ++slabs;
      free_items += bits;
      if (list == kFree) ++free_slabs;
      before = slab;
    }
  }
  if (slabs * keg.uk_ppera != domain.ud_pages) return broken("UMA-4", keg.uk_name + ": ud_pages");
  if (free_items != domain.ud_free_items) return broken("UMA-4", keg.uk_name + ": ud_free_items");
  if (free_slabs != domain.ud_free_slabs) return broken("UMA-4", keg.uk_name + ": ud_free_slabs");
  return {};
}

std::string check_zone_lists(uma_zone& zone) {
  const std::lock_guard lock(zone.uz_domain[0].uzd_lock);
  std::int64_t items = 0;
  for (uma_bucket* bucket = zone.uz_domain[0].uzd_buckets; bucket != nullptr;
       bucket = bucket->ub_link) {
    if (bucket->ub_cnt <= 0 || bucket->ub_cnt > bucket->ub_entries)
      return broken("UMA-4", zone.uz_name + ": a listed bucket with a strange count");
    items += bucket->ub_cnt;
  }
  if (items != zone.uz_domain[0].uzd_nitems) return broken("UMA-4", zone.uz_name + ": uzd_nitems");
  return {};
}

std::string check_zone(uma_zone& zone) {
  const ZoneCounters counters = zone_counters(zone);
  if (std::string what = check_zone_lists(zone); !what.empty()) return what;
  if (std::string what = check_keg(*zone.uz_keg); !what.empty()) return what;
  const uma_keg& keg = *zone.uz_keg;
  const std::uint64_t items = keg.uk_domain[0].ud_pages / keg.uk_ppera * keg.uk_ipers;
  const std::uint64_t live = counters.allocs - counters.frees;
  const std::uint64_t rest = keg.uk_domain[0].ud_free_items + counters.cached +
                             static_cast<std::uint64_t>(zone.uz_domain[0].uzd_nitems);
  if (items != live + rest)
    return broken("UMA-1", zone.uz_name + ": " + std::to_string(items) + " items, " +
                               std::to_string(live) + " live, " + std::to_string(rest) + " free");
  return {};
}

std::string check_vm(Vm& vm) {
  if (std::string what = check_arena(vm); !what.empty()) return what;
  for (uma_zone* zone : zone_list(vm))
    if (std::string what = check_zone(*zone); !what.empty()) return what;
  return {};
}

}  // namespace dtmalloc
