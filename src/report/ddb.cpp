// SPDX-License-Identifier: BSD-2-Clause
// What the kernel's debugger shows: show malloc, show uma, show umacache, show multizone_matches.
// Counterpart:  sys/kern/kern_malloc.c, sys/vm/uma_core.c (DB_SHOW_COMMAND)
// Differs:      there is no pager to quit

#include <dtmalloc/kern/malloc_type.h>
#include <fmt/format.h>

#include <algorithm>
#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {
namespace {

struct UmaRow {
  const ZoneStats* zone;
  std::int64_t used, free, total;
  std::uint64_t xfree;
};

UmaRow uma_row(const ZoneStats& zone) {
  UmaRow row{};
  row.zone = &zone;
  row.used = static_cast<std::int64_t>(zone.allocs - zone.frees);
  row.free = static_cast<std::int64_t>(zone.free);
  row.total = (row.used + row.free) * static_cast<std::int64_t>(zone.size);
  row.xfree = zone.xdomain;
  for (const ZoneStats::Cpu& cpu : zone.cpus) row.xfree += cpu.cross;
  return row;
}

}  // namespace

std::string print_ddb_malloc(const Snapshot& snapshot, bool csv) {
  std::string out =
      csv ? "Type,InUse,MemUse,Requests\n"
          : fmt::format("{:>18} {:>12}  {:>12} {:>12}\n", "Type", "InUse", "MemUse", "Requests");
  // The list begins with the newest type; the search for the next largest starts at 0.
  std::vector<const TypeRow*> rows;
  for (auto row = snapshot.types.rbegin(); row != snapshot.types.rend(); ++row)
    if (static_cast<std::int64_t>(row->memuse()) >= 0) rows.push_back(&*row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TypeRow* a, const TypeRow* b) { return a->memuse() > b->memuse(); });
  for (const TypeRow* row : rows) {
    const std::uint64_t kib = (row->memuse() + 1023) / 1024;
    out += csv ? fmt::format("\"{}\",{},{}K,{}\n", row->name, row->inuse(), kib, row->numallocs)
               : fmt::format("{:>18} {:>12} {:>12}K {:>12}\n", row->name, row->inuse(), kib,
                             row->numallocs);
  }
  return out;
}

std::string print_ddb_uma(const Snapshot& snapshot, bool csv) {
  std::string out = csv ? "Zone,Size,Used,Free,Requests,Sleeps,Bucket,Total Mem,XFree\n"
                        : fmt::format("{:>18} {:>6} {:>7} {:>7} {:>11} {:>7} {:>7} {:>10} {:>8}\n",
                                      "Zone", "Size", "Used", "Free", "Requests", "Sleeps",
                                      "Bucket", "Total Mem", "XFree");
  std::vector<UmaRow> rows;  // the kernel's list is that of vmstat -z, turned round
  for (auto zone = snapshot.zones.rbegin(); zone != snapshot.zones.rend(); ++zone)
    if (!zone->cache_only()) rows.push_back(uma_row(*zone));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const UmaRow& a, const UmaRow& b) { return a.total > b.total; });
  for (const UmaRow& row : rows) {
    const ZoneStats& zone = *row.zone;
    out +=
        csv ? fmt::format("\"{}\",{},{},{},{},{},{},{},{}\n", zone.name, zone.size, row.used,
                          row.free, zone.allocs, zone.sleep, zone.bucket_size, row.total, row.xfree)
            : fmt::format("{:>18} {:>6} {:>7} {:>7} {:>11} {:>7} {:>7} {:>10} {:>8}\n", zone.name,
                          zone.size, row.used, row.free, zone.allocs, zone.sleep, zone.bucket_size,
                          row.total, row.xfree);
  }
  return out;
}

std::string print_ddb_umacache(const Snapshot& snapshot) {
  std::string out = fmt::format("{:>18} {:>8} {:>8} {:>8} {:>12} {:>8}\n", "Zone", "Size", "Used",
                                "Free", "Requests", "Bucket");
  for (auto zone = snapshot.zones.rbegin(); zone != snapshot.zones.rend(); ++zone) {
    if (!zone->cache_only()) continue;
    const UmaRow row = uma_row(*zone);
    out += fmt::format("{:>18} {:>8} {:>8} {:>8} {:>12} {:>8}\n", zone->name, zone->size, row.used,
                       row.free, zone->allocs, zone->bucket_size);
  }
  return out;
}

std::string print_ddb_multizone(const Snapshot& snapshot, const malloc_type& type) {
  if (type.ks_version != M_VERSION)
    return fmt::format("Version {:x} does not match expected {:x}\n", type.ks_version, M_VERSION);
  std::string out;
  for (auto row = snapshot.types.rbegin(); row != snapshot.types.rend(); ++row)
    if (row->subzone == type.ks_mti.mti_zone) out += row->name + "\n";
  return out;
}

}  // namespace dtmalloc::report
