// SPDX-License-Identifier: BSD-2-Clause
// What is told about zones: rows, and the stream of vm.zone_stats.
//
// Counterpart:  sys/vm/uma_core.c (uma_zone_sumstat, uma_vm_zone_stats,
//               sysctl_vm_zone_stats)
// Locking:      zones_mutex for the list; ud_lock and uzd_lock for one domain's counts; a CPU is
//               stopped while its cache is read
#include <dtmalloc/vm/uma_stream.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <unordered_map>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

static_assert(std::endian::native == std::endian::little, "the streams are little-endian");
static_assert(sizeof(uma_stream_header) == 16 && offsetof(uma_stream_header, ush_maxcpus) == 4 &&
              offsetof(uma_stream_header, ush_count) == 8);
static_assert(
    sizeof(uma_type_header) == 120 && offsetof(uma_type_header, uth_align) == 32 &&
    offsetof(uma_type_header, uth_size) == 36 && offsetof(uma_type_header, uth_rsize) == 40 &&
    offsetof(uma_type_header, uth_maxpages) == 44 && offsetof(uma_type_header, uth_limit) == 48 &&
    offsetof(uma_type_header, uth_pages) == 52 && offsetof(uma_type_header, uth_keg_free) == 56 &&
    offsetof(uma_type_header, uth_zone_free) == 60 &&
    offsetof(uma_type_header, uth_bucketsize) == 64 &&
    offsetof(uma_type_header, uth_zone_flags) == 68 &&
    offsetof(uma_type_header, uth_allocs) == 72 && offsetof(uma_type_header, uth_frees) == 80 &&
    offsetof(uma_type_header, uth_fails) == 88 && offsetof(uma_type_header, uth_sleeps) == 96 &&
    offsetof(uma_type_header, uth_xdomain) == 104);
static_assert(sizeof(uma_percpu_stat) == 64 && offsetof(uma_percpu_stat, ups_frees) == 8 &&
              offsetof(uma_percpu_stat, ups_cache_free) == 16);

bool internal(const ZoneStats& zone) { return (zone.flags & UMA_ZFLAG_INTERNAL) != 0; }

// Requires: every CPU but the one that is looked at may run.
void read_cpus(uma_zone& zone, ZoneStats& row) {
  Vm& vm = *zone.vm;
  const int cpus = vm.cpus.count();
  row.cpus.resize(static_cast<std::size_t>(cpus));
  if (internal(row)) return;
  for (int id = 0; id < cpus; ++id) {
    uma_cache* cache = zone.cache_or_null(id);
    if (cache == nullptr) continue;
    vm.cpus.run_on_cpu(vm.cpus.cpu(id), [&] {
      const uma_bucket* cross = cache->uc_crossbucket;
      row.cpus[static_cast<std::size_t>(id)] = {
          cache->uc_allocs, cache->frees(), static_cast<std::uint64_t>(cache->held()),
          cross != nullptr ? static_cast<std::uint64_t>(cross->ub_cnt) : 0};
    });
  }
}

void read_keg(uma_keg& keg, ZoneStats& row) {
  row.keg_name = keg.uk_name;
  row.rsize = keg.uk_rsize;
  row.ppera = keg.uk_ppera;
  row.ipers = keg.uk_ipers;
  row.align = keg.uk_align;
  row.reserve = keg.uk_reserve;
  row.efficiency = keg.efficiency;
  for (int id = 0; id < keg.vm->config.domains; ++id) {
    uma_domain& from = keg.domain(id);
    ZoneStats::Domain& domain = row.domains[static_cast<std::size_t>(id)];
    const std::lock_guard lock(from.ud_lock);
    domain.pages = from.ud_pages;
    domain.free_items = from.ud_free_items;
    domain.free_slabs = from.ud_free_slabs;
    row.keg_pages += domain.pages;
    row.keg_free_items += domain.free_items;
    row.keg_free_slabs += domain.free_slabs;
  }
}

void read_domains(uma_zone& zone, ZoneStats& row) {
  for (int id = 0; id < zone.vm->config.domains; ++id) {
    uma_zone_domain& from = zone.domain(id);
    ZoneStats::Domain& domain = row.domains[static_cast<std::size_t>(id)];
    const std::lock_guard lock(from.uzd_lock);
    domain.nitems = from.uzd_nitems;
    domain.imax = from.uzd_imax;
    domain.imin = from.uzd_imin;
    domain.bimin = from.uzd_bimin;
    domain.wss = from.uzd_wss;
    domain.limin = from.uzd_limin;
    domain.timin = from.uzd_timin;
    row.bucket_cache_items += static_cast<std::uint64_t>(domain.nitems);
  }
}

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Statistics are cut to 32 bits, as the kernel's assignment does.
std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

std::vector<uma_zone*> zone_list(Vm& vm) {
  uma_timer_sync(vm);
  const std::lock_guard lock(vm.zones_mutex);
  std::vector<uma_zone*> out;
  std::unordered_map<const uma_keg*, std::vector<uma_zone*>> of_keg;
  for (const auto& zone : vm.zones) {
    if (!zone->listed) continue;
    if (zone->uz_keg == nullptr)
      out.push_back(zone.get());
    else
      of_keg[zone->uz_keg].push_back(zone.get());
  }
  for (const auto& keg : vm.kegs) {
    const std::vector<uma_zone*>& zones = of_keg[keg.get()];
    out.insert(out.end(), zones.rbegin(), zones.rend());
  }
  return out;
}

ZoneStats zone_stats(uma_zone& zone) {
  ZoneStats row;
  row.name = zone.uz_name;
  row.ctlname = zone.uz_ctlname;
  row.flags = zone.uz_flags;
  row.size = zone.uz_size;
  row.bucket_size = zone.uz_bucket_size.load(std::memory_order_relaxed);
  row.bucket_size_max = zone.uz_bucket_size_max;
  row.bucket_max = zone.uz_bucket_max;
  row.domains.resize(static_cast<std::size_t>(zone.vm->config.domains));
  read_cpus(zone, row);
  if (zone.uz_keg != nullptr) read_keg(*zone.uz_keg, row);
  read_domains(zone, row);

  row.zone_allocs = zone.uz_allocs->load(std::memory_order_relaxed);
  row.zone_frees = zone.uz_frees->load(std::memory_order_relaxed);
  row.allocs = row.zone_allocs;
  row.frees = row.zone_frees;
  row.free = row.bucket_cache_items + (row.secondary() ? 0 : row.keg_free_items);
  for (const ZoneStats::Cpu& cpu : row.cpus) {
    row.allocs += cpu.allocs;
    row.frees += cpu.frees;
    row.free += cpu.items;
  }
  row.requests = std::max(row.allocs, row.frees);
  row.used = row.requests - row.frees;
  row.fail = zone.uz_fails->load(std::memory_order_relaxed);
  row.limit = zone.uz_max_items.load(std::memory_order_relaxed);
  row.sleepers = zone.uz_sleepers.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(zone.limit.mutex);
    row.items = zone.item_count();
  }
  row.sleep = zone.uz_sleeps.load(std::memory_order_relaxed);
  row.xdomain = zone.uz_xdomain->load(std::memory_order_relaxed);
  return row;
}

std::vector<ZoneStats> zone_stats(Vm& vm) {
  std::vector<ZoneStats> out;
  for (uma_zone* zone : zone_list(vm)) out.push_back(zone_stats(*zone));
  return out;
}

// The order is the reverse of vmstat -z's, whose library puts each record before the last one.
// QUIRK: 29 (STREAM-07) ush_maxcpus is called MAXCPU by the header and is the machine's CPUs.
// QUIRK: 30 (STREAM-08) uth_bucketsize is documented and never set.
std::string zone_stats_stream(Vm& vm) {
  std::vector<ZoneStats> zones = zone_stats(vm);
  std::reverse(zones.begin(), zones.end());
  std::size_t cpus = static_cast<std::size_t>(vm.cpus.count());
  std::string out;
  append(out, uma_stream_header{UMA_STREAM_VERSION, low(cpus), low(zones.size()), 0});
  for (const ZoneStats& zone : zones) {
    uma_type_header header{};
    zone.name.copy(header.uth_name, UTH_MAX_NAME - 1);
    header.uth_size = low(zone.size);
    if (!zone.cache_only()) {
      const auto pages = [&](std::uint64_t items) { return low(items / zone.ipers * zone.ppera); };
      header.uth_limit = low(zone.limit);
      header.uth_align = zone.align;
      header.uth_rsize = zone.rsize;
      header.uth_maxpages = pages(zone.limit);
      header.uth_pages = zone.limit != 0 ? pages(zone.items) : low(zone.keg_pages);
      header.uth_keg_free = low(zone.keg_free_items);
    }
    header.uth_zone_free = low(zone.bucket_cache_items);
    if (zone.secondary()) header.uth_zone_flags = UTH_ZONE_SECONDARY;
    header.uth_allocs = zone.zone_allocs;
    header.uth_frees = zone.zone_frees;
    header.uth_fails = zone.fail;
    header.uth_sleeps = zone.sleep;
    header.uth_xdomain = zone.xdomain;
    append(out, header);
    for (std::size_t id = 0; id < cpus; ++id) {  // one may have joined meanwhile
      const ZoneStats::Cpu cpu = id < zone.cpus.size() ? zone.cpus[id] : ZoneStats::Cpu{};
      append(out, uma_percpu_stat{cpu.allocs, cpu.frees, cpu.items, {}});
    }
  }
  return out;
}

}  // namespace dtmalloc
