// SPDX-License-Identifier: BSD-2-Clause
// The reader of the statistics streams.
#include "support/memstat.hpp"

#include <algorithm>

namespace dtmalloc::support {
namespace {

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}
std::uint32_t u32(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint32_t>(number(bytes, at, 4));
}
std::uint64_t u64(std::string_view bytes, std::size_t at) { return number(bytes, at, 8); }

std::string name(std::string_view record) {
  const std::string_view field = record.substr(0, 32);
  return std::string(field.substr(0, field.find('\0')));
}

// The records behind the 16-byte header; none if the stream is not whole.
std::vector<std::string_view> records(std::string_view stream, std::size_t head) {
  std::vector<std::string_view> out;
  if (stream.size() < 16 || u32(stream, 0) != 1) return out;
  const std::size_t bytes = head + std::size_t{64} * u32(stream, 4);
  if (stream.size() != 16 + bytes * u32(stream, 8)) return out;
  for (std::size_t at = 16; at < stream.size(); at += bytes)
    out.push_back(stream.substr(at, bytes));
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<MemstatType> memstat_malloc(std::string_view stream) {
  std::vector<MemstatType> out;
  for (const std::string_view record : records(stream, 32)) {
    MemstatType type;
    type.name = name(record);
    for (std::size_t cpu = 32; cpu < record.size(); cpu += 64) {
      type.memalloced += u64(record, cpu);
      type.memfreed += u64(record, cpu + 8);
      type.numallocs += u64(record, cpu + 16);
      type.numfrees += u64(record, cpu + 24);
      type.sizemask |= u64(record, cpu + 32);
    }
    out.push_back(type);
  }
  return out;
}

std::vector<MemstatZone> memstat_uma(std::string_view stream) {
  std::vector<MemstatZone> out;
  for (const std::string_view record : records(stream, 120)) {
    MemstatZone zone;
    zone.name = name(record);
    zone.align = u32(record, 32);
    zone.size = u32(record, 36);
    zone.rsize = u32(record, 40);
    zone.maxpages = u32(record, 44);
    zone.countlimit = u32(record, 48);
    zone.pages = u32(record, 52);
    zone.kegfree = u32(record, 56);
    zone.zonefree = u32(record, 60);
    zone.bucketsize = u32(record, 64);
    zone.secondary = (u32(record, 68) & 1) != 0;
    zone.numallocs = u64(record, 72);
    zone.numfrees = u64(record, 80);
    zone.failures = u64(record, 88);
    zone.sleeps = u64(record, 96);
    zone.xdomain = u64(record, 104);
    for (std::size_t cpu = 120; cpu < record.size(); cpu += 64) {
      zone.numallocs += u64(record, cpu);
      zone.numfrees += u64(record, cpu + 8);
      zone.cachefree += u64(record, cpu + 16);
    }
    zone.numallocs = std::max(zone.numallocs, zone.numfrees);
    out.push_back(zone);
  }
  return out;
}

std::size_t memstat_malloc_buffer(std::size_t count, std::size_t maxcpus) {
  return 32 + count * (32 + 64 * maxcpus);
}

}  // namespace dtmalloc::support
