// SPDX-License-Identifier: BSD-2-Clause
// Laws over a kernel's counters.

#include "support/laws.hpp"

#include <map>

#include "support/memstat.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc::support {
namespace {

std::string differs(const std::string& what, std::uint64_t got, std::uint64_t expected) {
  if (got == expected) return "";
  return what + ": " + std::to_string(got) + ", expected " + std::to_string(expected);
}

}  // namespace

std::uint64_t expected_zmax(std::uint64_t mem) { return mem / 4096 <= 32768 ? 4096 : 65536; }

std::string law_of_types(const Kernel& kernel, const std::vector<malloc_type*>& types,
                         const reference::FlatMalloc& model) {
  // With frees under a wrong type only the sum over all types is the live blocks.
  std::uint64_t live_bytes = 0, live_count = 0, bytes = 0, count = 0;
  for (const auto& [address, block] : model.live()) {
    live_bytes += block.size;
    ++live_count;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == nullptr) continue;
    const TypeStats got = kernel.type_stats(*types[i]);
    const reference::FlatStats expected = model.stats(static_cast<int>(i));
    bytes += got.memalloced - got.memfreed;
    count += got.numallocs - got.numfrees;
    const std::string name = std::string("type ") + types[i]->ks_shortdesc + ", ";
    std::string wrong = differs(name + "memalloced", got.memalloced, expected.memalloced);
    if (wrong.empty()) wrong = differs(name + "memfreed", got.memfreed, expected.memfreed);
    if (wrong.empty()) wrong = differs(name + "numallocs", got.numallocs, expected.numallocs);
    if (wrong.empty()) wrong = differs(name + "numfrees", got.numfrees, expected.numfrees);
    if (wrong.empty()) wrong = differs(name + "mask of sizes", got.size_mask, expected.mask);
    if (!wrong.empty()) return wrong;
  }
  const std::string wrong = differs("bytes in use of all types", bytes, live_bytes);
  return wrong.empty() ? differs("blocks in use of all types", count, live_count) : wrong;
}

// What buckets hold that are being sorted by domain; no counter shows it.
std::uint64_t being_sorted(Kernel& kernel, std::size_t index) {
  std::uint64_t items = 0;
  uma_zone& zone = *zone_list(kernel.vm()).at(index);
  for (int d = 0; d < kernel.config().domains; ++d) {
    const uma_bucket* cross = zone.domain(d).uzd_cross;
    if (cross != nullptr) items += static_cast<std::uint64_t>(cross->ub_cnt);
  }
  return items;
}

std::string law_of_kegs(Kernel& kernel, const reference::FlatMalloc& model) {
  std::map<std::string, std::uint64_t> live;
  for (const auto& [address, block] : model.live()) {
    if (block.zindx != -1) ++live["malloc-" + std::to_string(block.size)];
  }
  std::size_t index = 0;
  for (const ZoneStats& zone : kernel.zones()) {
    const std::uint64_t sorted = being_sorted(kernel, index++);
    if (zone.ppera == 0) return "zone " + zone.name + " has slabs of no pages";
    std::uint64_t cached = zone.keg_free_items + zone.bucket_cache_items;
    for (const ZoneStats::Cpu& cpu : zone.cpus) cached += cpu.items;
    std::string wrong =
        differs("zone " + zone.name + ", items live and free", zone.used + cached + sorted,
                zone.keg_pages / zone.ppera * zone.ipers);
    if (wrong.empty()) wrong = differs("zone " + zone.name + ", FREE", zone.free, cached);
    if (wrong.empty() && zone.name.rfind("malloc-", 0) == 0) {
      wrong = differs("zone " + zone.name + ", live items", zone.used, live[zone.name]);
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string law_of_pages(const Kernel& kernel, const reference::FlatMalloc& model) {
  std::uint64_t keg_pages = 0, large = 0, contig = 0;
  for (const ZoneStats& zone : kernel.zones()) keg_pages += zone.keg_pages;
  for (const auto& [address, block] : model.live()) {
    if (block.zindx == -1) (block.contig ? contig : large) += block.size;
  }
  std::string wrong =
      differs("pages free, in kegs and in large blocks",
              kernel.free_pages() + keg_pages + (large + contig) / kPageSize, kernel.total_pages());
  if (wrong.empty()) {
    wrong = differs("uma_kmem_total", kernel.uma_kmem_total(), keg_pages * kPageSize + large);
  }
  return wrong;
}

std::string law_of_streams(Kernel& kernel) {
  const std::vector<MemstatType> types =
      memstat_malloc(kernel.sysctl().find("kern.malloc_stats")->bytes());
  const std::vector<malloc_type*> known = kernel.types();
  std::string wrong = differs("types in the stream", types.size(), known.size());
  for (std::size_t i = 0; i < types.size() && wrong.empty(); ++i) {
    const TypeStats stats = kernel.type_stats(*known[i]);
    const std::string name = "stream, type " + types[i].name + ", ";
    wrong = differs(name + "bytes", types[i].bytes(), stats.memalloced - stats.memfreed);
    if (wrong.empty())
      wrong = differs(name + "count", types[i].count(), stats.numallocs - stats.numfrees);
    if (wrong.empty()) wrong = differs(name + "sizes", types[i].sizemask, stats.size_mask);
  }
  const std::vector<MemstatZone> zones =
      memstat_uma(kernel.sysctl().find("vm.zone_stats")->bytes());
  const std::vector<ZoneStats> rows = kernel.zones();
  if (wrong.empty()) wrong = differs("zones in the stream", zones.size(), rows.size());
  for (std::size_t i = 0; i < zones.size() && wrong.empty(); ++i) {
    const std::string name = "stream, zone " + zones[i].name + ", ";
    wrong = differs(name + "USED", zones[i].count(), rows[i].used);
    if (wrong.empty()) wrong = differs(name + "FREE", zones[i].free(), rows[i].free);
    if (wrong.empty()) wrong = differs(name + "REQ", zones[i].numallocs, rows[i].requests);
    if (wrong.empty()) wrong = differs(name + "XDOM", zones[i].xdomain, rows[i].xdomain);
  }
  return wrong;
}

std::string law_of_domains(Kernel& kernel, const reference::FlatMalloc& model) {
  Vm& vm = kernel.vm();
  std::vector<std::uint64_t> pages;
  for (int d = 0; d < kernel.config().domains; ++d) {
    std::uint64_t sum = vm.domains[static_cast<std::size_t>(d)].free_count.load();
    for (uma_zone* zone : zone_list(vm)) sum += zone->uz_keg->domain(d).ud_pages;
    pages.push_back(sum);
  }
  for (const auto& [address, block] : model.live()) {
    if (block.zindx != -1) continue;
    const int domain = page_info(vm, reinterpret_cast<const void*>(address)).domain;
    pages[static_cast<std::size_t>(domain)] += block.size / kPageSize;
  }
  for (std::size_t d = 0; d < pages.size(); ++d) {
    std::string wrong =
        differs("pages of domain " + std::to_string(d), pages[d], vm.domains[d].page_count);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string law_of_structures(Kernel& kernel) { return check_vm(kernel.vm()); }

}  // namespace dtmalloc::support
