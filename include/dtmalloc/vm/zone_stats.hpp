// SPDX-License-Identifier: BSD-2-Clause
// ZoneStats: all that the kernel tells about one UMA zone, as plain data.
//
// What vmstat -z, vm.zone_stats, vm.uma.* and DDB show is computed from it (report/report.hpp).
//
// Example:
//   for (const ZoneStats& zone : kernel.zones())
//     if (zone.fail != 0) std::cout << zone.name << " failed " << zone.fail << " times\n";
//
// Units:         items, if not said otherwise; pages of 4096 bytes.
// Errors:        none.
// Thread safety: values. Each CPU stands still while its share is read, not all at once.
// Source:        spec/malloc9.md 5.12, 7.1, 7.3, 7.5.
#pragma once

#include <cstdint>
#include <dtmalloc/vm/uma.hpp>
#include <string>
#include <vector>

namespace dtmalloc {

struct ZoneStats {
  // One CPU's cache. A zone that is UMA's own (UMA_ZFLAG_INTERNAL) has none.
  struct Cpu {
    std::uint64_t allocs = 0, frees = 0;
    std::uint64_t items = 0;  // in its buckets, cross included
    std::uint64_t cross = 0;  // of these in the cross bucket
    bool operator==(const Cpu&) const = default;
  };
  // One NUMA domain: of the zone the full buckets and the working set, of its keg the slabs.
  struct Domain {
    std::int64_t nitems = 0, imax = 0, imin = 0, bimin = 0, wss = 0, limin = 0;
    std::uint32_t timin = 0;
    std::uint64_t pages = 0, free_items = 0, free_slabs = 0;
    bool operator==(const Domain&) const = default;
  };

  std::string name;
  std::string ctlname;  // below vm.uma: sanitised, "_1" behind the second of a name
  std::uint32_t flags = 0;
  std::uint64_t size = 0;  // bytes
  // The columns of vmstat -z.
  std::uint64_t limit = 0;  // 0: none
  std::uint64_t used = 0, free = 0, requests = 0, fail = 0, sleep = 0, xdomain = 0;

  // --- the keg; a secondary zone shows that of its primary, a cache-only zone has none
  std::string keg_name;
  std::uint32_t rsize = 0, ppera = 0, ipers = 0, align = 0, reserve = 0;
  std::uint32_t efficiency = 0;                                         // percent
  std::uint64_t keg_pages = 0, keg_free_items = 0, keg_free_slabs = 0;  // all domains

  // --- the zone
  std::uint32_t bucket_size = 0, bucket_size_max = 0;
  std::uint64_t bucket_max = 0;          // most items in full buckets, a domain
  std::uint64_t bucket_cache_items = 0;  // in full buckets: sum of nitems
  std::uint64_t items = 0;               // counted against the limit
  std::uint64_t sleepers = 0;
  std::uint64_t allocs = 0, frees = 0;            // all CPUs and the zone's own
  std::uint64_t zone_allocs = 0, zone_frees = 0;  // past the CPUs' buckets
  std::vector<Cpu> cpus;
  std::vector<Domain> domains;

  bool secondary() const { return (flags & UMA_ZONE_SECONDARY) != 0; }
  bool cache_only() const { return (flags & UMA_ZFLAG_CACHE) != 0; }
  bool operator==(const ZoneStats&) const = default;
};

}  // namespace dtmalloc
