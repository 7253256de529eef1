// SPDX-License-Identifier: BSD-2-Clause
// Snapshots of a kernel's counters, and the tables that FreeBSD's tools print from them.
//
// A snapshot is what libmemstat(3) gives to a program: a row for each malloc type and each zone, in
// the library's order. The streams that the library reads are the sysctl nodes kern.malloc_stats
// and vm.zone_stats (Kernel::sysctl(), kern/malloc_stream.h, vm/uma_stream.h).
//
// Example:
//   report::Snapshot s = report::take_snapshot(kernel);
//   std::cout << report::print_vmstat_m(s, s.vmstat_format);
//   std::cout << report::print_vmstat_m_json(s, 2);
//   for (const ZoneStats& zone : s.zones) ...                  // also Kernel::zones()
//
// Units:         bytes; zones count items.
// Errors:        none; a table of any snapshot can be printed.
// Thread safety: values; take_snapshot() may run beside allocating threads.
// Source:        vmstat(8), libmemstat(3), libxo(3); ddb(4);
//                spec/malloc9.md 7.2 to 7.6.
#pragma once

#include <cstdint>
#include <dtmalloc/vm/zone_stats.hpp>
#include <string>
#include <string_view>
#include <vector>

struct malloc_type;

namespace dtmalloc {
class Kernel;
}

namespace dtmalloc::report {

// One malloc type, summed over all CPUs.
struct TypeRow {
  std::string name;
  std::uint64_t memalloced = 0, memfreed = 0, numallocs = 0, numfrees = 0;
  std::uint64_t size_mask = 0;  // bit i: class i was used
  int subzone = 0;
  std::uint64_t inuse() const { return numallocs - numfrees; }
  std::uint64_t memuse() const { return memalloced - memfreed; }
  bool operator==(const TypeRow&) const = default;
};

struct Snapshot {
  std::vector<TypeRow> types;          // oldest registered first
  std::vector<std::uint32_t> classes;  // bytes; bit i of size_mask is classes[i]
  std::vector<ZoneStats> zones;        // in the order of Kernel::zones()
  int release = 16;
  int vmstat_format = 2;
  bool operator==(const Snapshot&) const = default;
};

Snapshot take_snapshot(const Kernel& kernel);

// vmstat -m. Format 2: release 16, humanized; 1: 13 to 15; 0: 6 to 12, with HighUse as '-'.
std::string print_vmstat_m(const Snapshot& snapshot, int format);
// The same as libxo's JSON.
std::string print_vmstat_m_json(const Snapshot& snapshot, int format);

// vmstat -z. Format 2: release 16; 1: 13 to 15, with XDOMAIN; 0: 9 to 12; -1: 6 and 7.
std::string print_vmstat_z(const Snapshot& snapshot, int format);
std::string print_vmstat_z_json(const Snapshot& snapshot, int format);

// ddb(4): show malloc and show uma (with `csv` as /i prints), the largest first; show umacache;
// show multizone_matches: the types that share the subzone of `type`.
std::string print_ddb_malloc(const Snapshot& snapshot, bool csv);
std::string print_ddb_uma(const Snapshot& snapshot, bool csv);
std::string print_ddb_umacache(const Snapshot& snapshot);
std::string print_ddb_multizone(const Snapshot& snapshot, const malloc_type& type);

// libxo's {h:} with hn-decimal: 1234 -> "1.2k" (divisor 1000), 69632 -> "68K" (1024). Without
// `decimal` whole numbers only.
std::string humanize(std::uint64_t value, std::uint64_t divisor, bool decimal);
// A document of the functions above as libxo's XML.
std::string xml_of_json(std::string_view json);
// A JSON string with its quotes; control bytes, quotes and malformed UTF-8 are escaped.
std::string json_string(std::string_view text);

}  // namespace dtmalloc::report
