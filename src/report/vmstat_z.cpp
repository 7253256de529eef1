// SPDX-License-Identifier: BSD-2-Clause
// vmstat -z: the tables of four generations, and JSON.
// Counterpart:  usr.bin/vmstat/vmstat.c (domemstat_zone), lib/libmemstat
// Differs:      the widths of the columns of 6 and 7 rest on no captured table (UNVERIFIED)

#include <fmt/format.h>

#include <algorithm>
#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {
namespace {

// A cache-only zone's is not in the stream.
std::uint64_t limit_of(const ZoneStats& zone) { return zone.cache_only() ? 0 : zone.limit; }

constexpr int kNewest = 2, kXdomain = 1, kSleep = 0;

}  // namespace

std::string print_vmstat_z(const Snapshot& snapshot, int format) {
  std::string out;
  if (format == kNewest) {
    out = fmt::format("{:<19} {:>7} {:>7} {:>8} {:>8} {:>8} {:>4} {:>4} {:>4}\n", "ITEM", "SIZE",
                      "LIMIT", "USED", "FREE", "REQ", "FAIL", "SLEEP", "XDOM");
  } else if (format == kXdomain) {  // FAIL has SLEEP's place, and nothing parts the two
    out = fmt::format("{:<20} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8}{:>4} {:>4}\n\n", "ITEM", "SIZE",
                      "LIMIT", "USED", "FREE", "REQ", "FAIL", "SLEEP", "XDOMAIN");
  } else if (format == kSleep) {
    out = fmt::format("{:<20} {:>6} {:>6} {:>8} {:>8} {:>8} {:>4} {:>4}\n\n", "ITEM", "SIZE",
                      "LIMIT", "USED", "FREE", "REQ", "FAIL", "SLEEP");
  } else {
    out = fmt::format("{:<20} {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n\n", "ITEM", "SIZE", "LIMIT",
                      "USED", "FREE", "REQUESTS");
  }
  for (const ZoneStats& zone : snapshot.zones) {
    if (format == kNewest) {
      const std::size_t width = zone.name.size() < 26 ? 26 - zone.name.size() : 1;
      out += fmt::format("{}:{:>{}},{:>7},{:>8},{:>8},{:>8},{:>4},{:>4},{:>4}\n", zone.name,
                         zone.size, width, limit_of(zone), zone.used, zone.free, zone.requests,
                         zone.fail, zone.sleep, zone.xdomain);
    } else if (format == kXdomain || format == kSleep) {
      out += fmt::format("{:<20} {:>6}, {:>6},{:>8},{:>8},{:>8},{:>4},{:>4}", zone.name + ":",
                         zone.size, limit_of(zone), zone.used, zone.free, zone.requests, zone.fail,
                         zone.sleep);
      out += format == kXdomain ? fmt::format(",{:>4}\n", zone.xdomain) : "\n";
    } else {
      out += fmt::format("{:<20} {:>8}, {:>8}, {:>8}, {:>8}, {:>8}\n", zone.name + ":", zone.size,
                         limit_of(zone), zone.used, zone.free, zone.requests);
    }
  }
  return out;
}

std::string print_vmstat_z_json(const Snapshot& snapshot, int format) {
  std::string out =
      fmt::format(R"({{"__version":"{}","vmstat":{{"memory-zone-statistics":{{"zone":[)",
                  format == kNewest ? 2 : 1);
  bool first = true;
  for (const ZoneStats& zone : snapshot.zones) {
    if (!first) out += ',';
    first = false;
    out += fmt::format(R"({{"name":{},"size":{},"limit":{},"used":{},"free":{},"requests":{})",
                       json_string(zone.name), zone.size, limit_of(zone), zone.used, zone.free,
                       zone.requests);
    if (format >= kSleep) out += fmt::format(R"(,"fail":{},"sleep":{})", zone.fail, zone.sleep);
    if (format >= kXdomain) out += fmt::format(R"(,"xdomain":{})", zone.xdomain);
    out += '}';
  }
  return out + "]}}}\n";
}

}  // namespace dtmalloc::report
