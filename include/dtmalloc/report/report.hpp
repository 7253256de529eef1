// SPDX-License-Identifier: BSD-2-Clause
// Snapshots of a kernel's counters, and the tables that FreeBSD's tools print from them.
//
// Example:
//   report::Snapshot s = report::take_snapshot(kernel);
//   std::cout << report::print_vmstat_m(s, s.vmstat_format);
//   std::cout << report::print_vmstat_m_json(s, 2);
//
// Units:         bytes.
// Errors:        none; a table of any snapshot can be printed.
// Thread safety: values; take_snapshot() may run beside allocating threads.
// Source:        vmstat(8), libmemstat(3), libxo(3); spec/malloc9.md 7.4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {
class Kernel;
}

namespace dtmalloc::report {

// One malloc type, summed over all CPUs.
struct TypeRow {
  std::string name;
  std::uint64_t memalloced = 0, memfreed = 0, numallocs = 0, numfrees = 0;
  std::uint64_t size_mask = 0;  // bit i: class i was used
  std::uint64_t inuse() const { return numallocs - numfrees; }
  std::uint64_t memuse() const { return memalloced - memfreed; }
  bool operator==(const TypeRow&) const = default;
};

struct Snapshot {
  std::vector<TypeRow> types;          // oldest registered first
  std::vector<std::uint32_t> classes;  // bytes; bit i of size_mask is classes[i]
  int release = 16;
  int vmstat_format = 2;
  bool operator==(const Snapshot&) const = default;
};

Snapshot take_snapshot(const Kernel& kernel);

// vmstat -m. Format 2: release 16, humanized; 1: 13 to 15; 0: 6 to 12, with HighUse as '-'.
std::string print_vmstat_m(const Snapshot& snapshot, int format);
// The same as libxo's JSON.
std::string print_vmstat_m_json(const Snapshot& snapshot, int format);

// libxo's {h:} with hn-decimal: 1234 -> "1.2k" (divisor 1000), 69632 -> "68K" (1024). Without
// `decimal` whole numbers only.
std::string humanize(std::uint64_t value, std::uint64_t divisor, bool decimal);
// A JSON string with its quotes; control bytes, quotes and malformed UTF-8 are escaped.
std::string json_string(std::string_view text);

}  // namespace dtmalloc::report
