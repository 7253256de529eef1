// SPDX-License-Identifier: BSD-2-Clause
// kern.malloc_stats and vm.zone_stats, byte for byte, and read back as libmemstat(3) does.
#include <gtest/gtest.h>

#include <cstring>

#include "support/kernel_fixture.hpp"
#include "support/memstat.hpp"

namespace dtmalloc {
namespace {

using support::MemstatType;
using support::MemstatZone;
using test::Machine;
using test::small_config;

constexpr std::size_t kTypeBytes = 32 + 1024 * 64;

std::string bytes(Machine& m, const char* name) {
  const auto node = m.kernel.sysctl().find(name);
  return node && node->bytes ? node->bytes() : std::string();
}

template <typename T>
T at(const std::string& stream, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= stream.size())
    std::memcpy(&value, stream.data() + offset, sizeof value);
  return value;
}

// Allocations and frees on two CPUs, among them one that frees what the other allocated.
void use(Machine& m, malloc_type& other) {
  void* first = m.kernel.malloc(100, &m.type, M_WAITOK);
  m.kernel.malloc(70000, &m.type, M_WAITOK);
  m.kernel.malloc(5000, &other, M_WAITOK);
  for (int i = 0; i < 700; ++i) m.kernel.free(m.kernel.malloc(16, &other, M_WAITOK), &other);
  void* held[600];
  for (void*& block : held) block = m.kernel.malloc(16, &other, M_WAITOK);
  m.kernel.cpus().move_to(1);
  for (void* block : held) m.kernel.free(block, &other);
  m.kernel.free(first, &m.type);
  m.kernel.malloc(600, &m.type, M_WAITOK);
}

KernelConfig two_cpus() { return small_config(2); }

// REQ: STREAM-01, STREAM-02, STREAM-04
TEST(MallocStats, LiesAsTheKernelLaysIt) {
  Machine m(two_cpus());
  for (malloc_type* type : m.kernel.types())
    if (m.kernel.types().size() > 1 && type != &m.type) m.kernel.malloc_uninit(type);
  malloc_type& cut = m.kernel.define_type("M_CUT", "a name of forty characters, all of them.");
  malloc_type& last = m.kernel.define_type("M_LAST", "last");
  m.kernel.cpus().bind(1);
  m.kernel.malloc(100, &last, M_WAITOK);
  const std::string stream = bytes(m, "kern.malloc_stats");
  ASSERT_EQ(stream.size(), 196720u);
  EXPECT_EQ(at<std::uint32_t>(stream, 0), 1u);
  EXPECT_EQ(at<std::uint32_t>(stream, 4), 1024u);
  EXPECT_EQ(at<std::uint32_t>(stream, 8), 3u);
  EXPECT_EQ(at<std::uint32_t>(stream, 12), 0u);
  // The newest first; each name in 32 bytes.
  std::string name(32, '\0');
  EXPECT_EQ(stream.substr(16, 32), name.replace(0, 4, "last"));
  EXPECT_EQ(stream.substr(16 + kTypeBytes, 32),
            std::string("a name of forty characters, all").substr(0, 31) + '\0');
  EXPECT_EQ(stream[16 + 2 * kTypeBytes], 'T');
  // CPU 1 of "last" is the only record that is not zero.
  const std::size_t cpu1 = 16 + 32 + 64;
  EXPECT_EQ(at<std::uint64_t>(stream, cpu1), 128u);
  EXPECT_EQ(at<std::uint64_t>(stream, cpu1 + 8), 0u);
  EXPECT_EQ(at<std::uint64_t>(stream, cpu1 + 16), 1u);
  EXPECT_EQ(at<std::uint64_t>(stream, cpu1 + 24), 0u);
  EXPECT_EQ(at<std::uint64_t>(stream, cpu1 + 32), 1u << 3);
  std::string rest = stream;
  rest.replace(cpu1, 64, std::string(64, '\0'));
  for (std::size_t type = 0; type < 3; ++type)
    EXPECT_EQ(rest.substr(16 + type * kTypeBytes + 32, 1024 * 64), std::string(1024 * 64, '\0'));
  EXPECT_GE(support::memstat_malloc_buffer(3, 1024), stream.size());
  EXPECT_EQ(std::string_view(cut.ks_shortdesc).size(), 40u);
}

// REQ: STREAM-03
TEST(MallocStats, LibmemstatReadsTheTypesBack) {
  Machine m(two_cpus());
  malloc_type& other = m.kernel.define_type("M_OTHER", "other");
  use(m, other);
  m.kernel.malloc_type_freed(&other, 1 << 20);  // more freed than allocated: a huge number
  const std::vector<MemstatType> rows = support::memstat_malloc(bytes(m, "kern.malloc_stats"));
  const std::vector<malloc_type*> types = m.kernel.types();
  ASSERT_EQ(rows.size(), types.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TypeStats stats = m.kernel.type_stats(*types[i]);
    EXPECT_EQ(rows[i].name, types[i]->ks_shortdesc);
    EXPECT_EQ(rows[i].memalloced, stats.memalloced);
    EXPECT_EQ(rows[i].memfreed, stats.memfreed);
    EXPECT_EQ(rows[i].numallocs, stats.numallocs);
    EXPECT_EQ(rows[i].numfrees, stats.numfrees);
    EXPECT_EQ(rows[i].sizemask, stats.size_mask);
  }
  const MemstatType& last = rows.back();
  EXPECT_EQ(last.count(), 0u);  // 1301 allocations, 1300 frees and one by hand
  EXPECT_EQ(static_cast<std::int64_t>(last.bytes()), 8192 - (1 << 20));
}

// REQ: STREAM-06
TEST(MallocStats, NamesAStructThatDoesNotExist) {
  Machine m;
  EXPECT_EQ(m.kernel.sysctl().find("kern.malloc_stats")->format, "s,malloc_type_ustats");
}

// REQ: STREAM-05, STREAM-07, STREAM-08, STREAM-09
TEST(ZoneStatsStream, LiesAsTheKernelLaysIt) {
  Machine m(two_cpus());
  m.kernel.malloc(16, &m.type, M_WAITOK);
  const std::string stream = bytes(m, "vm.zone_stats");
  const std::size_t zones = m.kernel.zones().size();
  constexpr std::size_t kZoneBytes = 120 + 2 * 64;
  ASSERT_EQ(stream.size(), 16 + zones * kZoneBytes);
  EXPECT_EQ(at<std::uint32_t>(stream, 0), 1u);
  EXPECT_EQ(at<std::uint32_t>(stream, 4), 2u);  // not MAXCPU
  EXPECT_EQ(at<std::uint32_t>(stream, 8), zones);
  EXPECT_EQ(at<std::uint32_t>(stream, 12), 0u);

  // The newest keg is that of malloc-65536; malloc-16 is 13 further on.
  EXPECT_EQ(stream.substr(16, 13), "malloc-65536" + std::string(1, '\0'));
  const std::size_t zone = 16 + 13 * kZoneBytes;
  std::string name(32, '\0');
  EXPECT_EQ(stream.substr(zone, 32), name.replace(0, 9, "malloc-16"));
  const std::pair<std::size_t, std::uint32_t> words[] = {{32, 15}, {36, 16}, {40, 16},  {44, 0},
                                                         {48, 0},  {52, 2},  {56, 250}, {60, 0},
                                                         {64, 0},  {68, 0}};
  for (const auto& [offset, word] : words)
    EXPECT_EQ(at<std::uint32_t>(stream, zone + offset), word) << offset;
  for (std::size_t offset = 72; offset < 120; offset += 8)
    EXPECT_EQ(at<std::uint64_t>(stream, zone + offset), 0u) << offset;
  EXPECT_EQ(at<std::uint64_t>(stream, zone + 120), 1u);    // ups_allocs of CPU 0
  EXPECT_EQ(at<std::uint64_t>(stream, zone + 128), 0u);    // ups_frees
  EXPECT_EQ(at<std::uint64_t>(stream, zone + 136), 253u);  // ups_cache_free
  for (std::size_t offset = 144; offset < kZoneBytes; offset += 8)
    EXPECT_EQ(at<std::uint64_t>(stream, zone + offset), 0u) << offset;

  // Every zone: no bucket size; UMA's own have nothing for any CPU.
  int internal = 0;
  for (std::size_t at_zone = 16; at_zone < stream.size(); at_zone += kZoneBytes) {
    EXPECT_EQ(at<std::uint32_t>(stream, at_zone + 64), 0u);
    if (stream.compare(at_zone, 9, "UMA Slabs") != 0) continue;
    ++internal;
    EXPECT_EQ(stream.substr(at_zone + 120, 128), std::string(128, '\0'));
  }
  EXPECT_EQ(internal, 2);
}

// REQ: STREAM-10, STREAM-09
TEST(ZoneStatsStream, LibmemstatReadsTheZonesBack) {
  Machine m(two_cpus());
  malloc_type& other = m.kernel.define_type("M_OTHER", "other");
  use(m, other);
  const std::vector<MemstatZone> rows = support::memstat_uma(bytes(m, "vm.zone_stats"));
  const std::vector<ZoneStats> zones = m.kernel.zones();
  ASSERT_EQ(rows.size(), zones.size());
  bool cached = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].name, zones[i].name);
    EXPECT_EQ(rows[i].size, zones[i].size) << rows[i].name;
    EXPECT_EQ(rows[i].countlimit, zones[i].limit) << rows[i].name;
    EXPECT_EQ(rows[i].count(), zones[i].used) << rows[i].name;
    EXPECT_EQ(rows[i].free(), zones[i].free) << rows[i].name;
    EXPECT_EQ(rows[i].numallocs, zones[i].requests) << rows[i].name;
    EXPECT_EQ(rows[i].failures, zones[i].fail) << rows[i].name;
    EXPECT_EQ(rows[i].sleeps, zones[i].sleep) << rows[i].name;
    EXPECT_EQ(rows[i].xdomain, zones[i].xdomain) << rows[i].name;
    EXPECT_EQ(rows[i].pages, zones[i].keg_pages) << rows[i].name;
    cached |= rows[i].zonefree != 0;
  }
  EXPECT_TRUE(cached);  // some full buckets were among it
}

// REQ: STREAM-05
TEST(ZoneStatsStream, AStreamThatIsNotWholeIsNotRead) {
  Machine m;
  const std::string stream = bytes(m, "vm.zone_stats");
  EXPECT_FALSE(support::memstat_uma(stream).empty());
  EXPECT_TRUE(support::memstat_uma(stream.substr(1)).empty());
  EXPECT_TRUE(support::memstat_uma(stream.substr(0, stream.size() - 1)).empty());
}

}  // namespace
}  // namespace dtmalloc
