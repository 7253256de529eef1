// SPDX-License-Identifier: BSD-2-Clause
// Copies the counters of a kernel; the only report source that sees live structures.

#include <dtmalloc/kernel.hpp>
#include <dtmalloc/report/memory.hpp>
#include <dtmalloc/report/report.hpp>

#include "kern/kernel_impl.hpp"
#include "vm/vm.hpp"

namespace dtmalloc::report {
namespace {

SlabUse& kind_of(const ZoneStats& zone, MemoryUse& use) {
  if ((zone.flags & (UMA_ZFLAG_INTERNAL | UMA_ZFLAG_BUCKET)) != 0) return use.uma;
  return (zone.flags & UMA_ZONE_MALLOC) != 0 ? use.malloc_zones : use.other_zones;
}

// Slabs and their items, keg by keg: the secondary zones of a keg stand before its primary one.
void add_slabs(const Kernel& kernel, std::uint64_t copies, MemoryUse& use) {
  std::uint64_t cached = 0;  // items of the keg in its zones' buckets
  for (const ZoneStats& zone : kernel.zones()) {
    if (zone.cache_only()) continue;
    cached += zone.bucket_cache_items;
    for (const ZoneStats::Cpu& cpu : zone.cpus) cached += cpu.items;
    if (zone.secondary()) continue;
    const std::uint64_t items = zone.keg_pages / zone.ppera * zone.ipers;
    const std::uint64_t size = zone.size * ((zone.flags & UMA_ZONE_PCPU) != 0 ? copies : 1);
    SlabUse& slabs = kind_of(zone, use);
    slabs.bytes += zone.keg_pages * kPageSize;
    slabs.used += static_cast<std::int64_t>((items - zone.keg_free_items - cached) * size);
    slabs.cached += cached * size;
    slabs.free += zone.keg_free_items * size;
    slabs.empty += zone.keg_free_slabs * zone.ppera * kPageSize;
    cached = 0;
  }
}

// Blocks of whole pages, by the words of the page map where they begin.
void add_blocks(const Vm& vm, MemoryUse& use) {
  for (std::size_t page = 0; page < vm.arena_pages; ++page) {
    const std::uintptr_t word = vm.page_slab[page].load(std::memory_order_acquire);
    const std::uintptr_t cookie = word & SLAB_COOKIE_MASK;
    if (cookie == SLAB_COOKIE_SLAB_PTR) continue;
    const std::uint64_t size = (word >> SLAB_COOKIE_SHIFT) + kPageSize - 1;
    (cookie == SLAB_COOKIE_MALLOC_LARGE ? use.large : use.contiguous) +=
        size / kPageSize * kPageSize;
  }
}

// Kernel::type_stats() of all types, CPU by CPU: a CPU's lines follow each other.
std::vector<TypeStats> sums_of(const Kernel& kernel, const std::vector<malloc_type*>& types) {
  std::vector<TypeStats> sums(types.size());
  std::vector<std::uintptr_t> offsets;  // of their lines; 0: Cpu::no_stats, zeroes
  for (const malloc_type* type : types)
    offsets.push_back(reinterpret_cast<std::uintptr_t>(type->ks_mti.mti_stats));
  CpuSet& cpus = *kernel.impl().cpus;
  for (int id = 0; id < cpus.count(); ++id) {
    if (!kernel.impl().has_counted[static_cast<std::size_t>(id)].load(std::memory_order_relaxed))
      continue;
    const auto* column = reinterpret_cast<const std::byte*>(&cpus.cpu(id));
    for (std::size_t i = 0; i < types.size(); ++i)
      Kernel::Impl::add_up(sums[i],
                           *reinterpret_cast<const malloc_type_stats*>(column + offsets[i]));
  }
  return sums;
}

}  // namespace

MemoryUse take_memory(Kernel& kernel) {
  const Vm& vm = kernel.vm();
  MemoryUse use;
  use.physical = kernel.total_pages() * kPageSize;
  use.free = kernel.free_pages() * kPageSize;
  add_slabs(kernel, static_cast<std::uint64_t>(vm.config.cpus), use);
  add_blocks(vm, use);
  for (const malloc_type* type : kernel.types()) {
    const TypeStats stats = kernel.type_stats(*type);
    use.types += static_cast<std::int64_t>(stats.memalloced - stats.memfreed);
  }
  return use;
}

Snapshot take_snapshot(const Kernel& kernel) {
  Snapshot snapshot;
  snapshot.classes = kernel.classes();
  snapshot.release = kernel.release().version;
  snapshot.vmstat_format = kernel.release().vmstat_format;
  const std::vector<malloc_type*> types = kernel.types();
  const std::vector<TypeStats> sums = sums_of(kernel, types);
  snapshot.types.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    const malloc_type* type = types[i];
    const TypeStats& stats = sums[i];
    snapshot.types.push_back({type->ks_shortdesc == nullptr ? "" : type->ks_shortdesc,
                              stats.memalloced, stats.memfreed, stats.numallocs, stats.numfrees,
                              stats.size_mask, type->ks_mti.mti_zone});
  }
  snapshot.zones = kernel.zones();
  return snapshot;
}

}  // namespace dtmalloc::report
