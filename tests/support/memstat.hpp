// SPDX-License-Identifier: BSD-2-Clause
// Reads the streams of kern.malloc_stats and vm.zone_stats as libmemstat(3) does.
//
// Every field is taken from its offset, not from the structs that wrote it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::support {

// One malloc type; the sums are unsigned, as the library's are.
struct MemstatType {
  std::string name;
  std::uint64_t memalloced = 0, memfreed = 0, numallocs = 0, numfrees = 0, sizemask = 0;
  std::uint64_t bytes() const { return memalloced - memfreed; }
  std::uint64_t count() const { return numallocs - numfrees; }
};

struct MemstatZone {
  std::string name;
  std::uint32_t align = 0, size = 0, rsize = 0, maxpages = 0, countlimit = 0, pages = 0,
                bucketsize = 0;
  bool secondary = false;
  std::uint64_t numallocs = 0, numfrees = 0, failures = 0, sleeps = 0, xdomain = 0;
  std::uint64_t kegfree = 0, zonefree = 0, cachefree = 0;
  std::uint64_t count() const { return numallocs - numfrees; }
  std::uint64_t free() const { return zonefree + cachefree + (secondary ? 0 : kegfree); }
};

// In the library's list order: each record before the last one. An empty list of a stream that is
// not whole, or of another version.
std::vector<MemstatType> memstat_malloc(std::string_view stream);
std::vector<MemstatZone> memstat_uma(std::string_view stream);
// Bytes that the library sets aside for `count` types on a machine of kern.smp.maxcpus CPUs.
std::size_t memstat_malloc_buffer(std::size_t count, std::size_t maxcpus);

}  // namespace dtmalloc::support
