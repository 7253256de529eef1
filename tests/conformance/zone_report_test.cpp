// SPDX-License-Identifier: BSD-2-Clause
// vmstat -z and ddb(4)'s tables of a machine.
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>

#include "support/kernel_fixture.hpp"
#include "support/memstat.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::small_config;

std::string line_of(const std::string& table, const std::string& start) {
  const std::size_t at = ("\n" + table).find("\n" + start);
  return at == std::string::npos ? "" : table.substr(at, table.find('\n', at) - at);
}

// REQ: VMSTATZ-08
TEST(ZoneReport, AfterTheFirstAllocation) {
  Machine m;
  m.kernel.malloc(16, &m.type, M_WAITOK);
  const report::Snapshot snapshot = report::take_snapshot(m.kernel);
  EXPECT_EQ(line_of(report::print_vmstat_z(snapshot, 2), "malloc-16:"),
            "malloc-16:               16,      0,       1,     503,       1,   0,   0,   0");
  EXPECT_EQ(
      line_of(report::print_ddb_uma(snapshot, false), "         malloc-16"),
      "         malloc-16     16       1     503           1       0     254       8064        "
      "0");
}

// REQ: VMSTATZ-08
TEST(ZoneReport, UsedIsNeverBelowZero) {
  Machine m(small_config(2));
  uma_zone* zone =
      uma_zcreate(m.kernel.vm(), "twice", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  void* item = uma_zalloc(zone, kM_WAITOK);
  uma_zfree(zone, item);
  uma_zfree(zone, item);  // a bug that a kernel without INVARIANTS does not see
  const ZoneStats row = m.zone("twice");
  EXPECT_EQ(row.frees, 2u);
  EXPECT_EQ(row.allocs, 1u);
  EXPECT_EQ(row.used, 0u);
  EXPECT_EQ(row.requests, 2u);
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), item);  // the counts are right again
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), item);
}

// REQ: VMSTATZ-05, VMSTATZ-06
TEST(ZoneReport, AllZonesStandInOrder) {
  Machine m;
  uma_zone* first =
      uma_zcreate(m.kernel.vm(), "same", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  uma_zone* second =
      uma_zcreate(m.kernel.vm(), "same", 32, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  std::vector<std::string> names;
  for (const ZoneStats& zone : report::take_snapshot(m.kernel).zones)
    names.push_back(zone.name + " " + std::to_string(zone.size));
  ASSERT_EQ(names.size(), 31u);
  EXPECT_EQ(names.front(), "UMA Slabs 0 80");
  EXPECT_EQ(names[2], "2 Bucket 32");
  EXPECT_EQ(names[9], "256 Bucket 2048");
  EXPECT_EQ(names[10], "pcpu-4 4");
  EXPECT_EQ(names[14], "pcpu-64 64");
  EXPECT_EQ(names[15], "malloc-16 16");
  EXPECT_EQ(names[28], "malloc-65536 65536");
  EXPECT_EQ(names[29], "same 64");
  EXPECT_EQ(names[30], "same 32");
  uma_zdestroy(second);
  uma_zdestroy(first);
}

// REQ: DDB-09
TEST(ZoneReport, UmasOwnZonesHaveCountersOnly) {
  Machine m;
  m.kernel.malloc(65536, &m.type, M_WAITOK);
  const ZoneStats slabs = m.zone("UMA Slabs 0");
  // A header for the block's slab, and one for the slab of the bucket that holds "2 Bucket"s.
  EXPECT_EQ(slabs.zone_allocs, 2u);
  EXPECT_EQ(slabs.allocs, 2u);
  EXPECT_EQ(slabs.free, slabs.keg_free_items);
  EXPECT_EQ(line_of(report::print_ddb_uma(report::take_snapshot(m.kernel), true), "\"UMA Slabs 0"),
            "\"UMA Slabs 0\",80,2,48,2,0,0,4000,0");
}

KernelConfig two_domains() {
  KernelConfig config = small_config(2);
  config.domains = 2;
  return config;
}

// REQ: DDB-08, STREAM-09, SYSCTL-02, SYSCTL-04
TEST(ZoneReport, CrossBucketsCountAsFreeAndAsForeign) {
  Machine m(two_domains());
  m.kernel.cpus().bind(0);
  void* blocks[10];
  for (void*& block : blocks) block = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.kernel.cpus().move_to(1);
  for (void* block : blocks) m.kernel.free(block, &m.type);

  const ZoneStats zone = m.zone("malloc-16");
  ASSERT_EQ(zone.cpus.size(), 2u);
  EXPECT_EQ(zone.cpus[0].items, 244u);
  EXPECT_EQ(zone.cpus[0].cross, 0u);
  EXPECT_EQ(zone.cpus[1].items, 10u);
  EXPECT_EQ(zone.cpus[1].cross, 10u);
  EXPECT_EQ(zone.xdomain, 0u);  // counts what was flushed
  EXPECT_EQ(zone.free, 504u);
  EXPECT_EQ(line_of(report::print_ddb_uma(report::take_snapshot(m.kernel), true), "\"malloc-16"),
            "\"malloc-16\",16,0,504,10,0,254,8064,10");
  for (const support::MemstatZone& row :
       support::memstat_uma(m.kernel.sysctl().find("vm.zone_stats")->bytes())) {
    if (row.name == "malloc-16") {
      EXPECT_EQ(row.cachefree, 254u);
    }
  }
  const std::string top = "vm.uma.malloc_16.";
  EXPECT_EQ(m.kernel.sysctl().find(top + "keg.domain.0.pages")->read(), "2");
  EXPECT_EQ(m.kernel.sysctl().find(top + "keg.domain.1.pages")->read(), "0");
  EXPECT_EQ(m.kernel.sysctl().find(top + "domain.0.imax")->read(), "254");
  EXPECT_EQ(m.kernel.sysctl().find(top + "domain.1.imax")->read(), "0");
  EXPECT_FALSE(m.kernel.sysctl().find(top + "domain.2.imax"));
}

// A machine with two cache-only zones and a keg of three zones.
struct ManyZones : Machine {
  ManyZones() {
    Vm& vm = kernel.vm();
    auto import = [](void* arg, void** store, int, int, int) {
      *store = arg;
      return 1;
    };
    auto release = [](void*, void**, int) {};
    older = uma_zcache_create(vm, "cache 1", 100, nullptr, nullptr, nullptr, nullptr, import,
                              release, this, 0);
    primary = uma_zcreate(vm, "primary", 256, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
    newer = uma_zcache_create(vm, "cache 2", 50, nullptr, nullptr, nullptr, nullptr, import,
                              release, this, 0);
    first = uma_zsecond_create("second 1", nullptr, nullptr, nullptr, nullptr, primary);
    second = uma_zsecond_create("second 2", nullptr, nullptr, nullptr, nullptr, primary);
  }
  std::string stream() { return kernel.sysctl().find("vm.zone_stats")->bytes(); }
  std::string value(const char* name) {
    const auto node = kernel.sysctl().find(std::string("vm.uma.") + name);
    return node ? node->read() : "(none)";
  }
  uma_zone *older, *newer, *primary, *first, *second;
};

// REQ: VMSTATZ-06, STREAM-10, DDB-10
TEST(ZoneReport, CacheZonesStandFirstAndSecondaryBeforePrimary) {
  ManyZones m;
  std::vector<std::string> names;
  for (const ZoneStats& zone : m.kernel.zones()) names.push_back(zone.name);
  ASSERT_GT(names.size(), 5u);
  EXPECT_EQ(names[0], "cache 1");
  EXPECT_EQ(names[1], "cache 2");
  EXPECT_EQ(names.back(), "primary");
  EXPECT_EQ(names[names.size() - 2], "second 1");
  EXPECT_EQ(names[names.size() - 3], "second 2");
  const auto rows = support::memstat_uma(m.stream());
  ASSERT_EQ(rows.size(), names.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].name, names[i]);

  ASSERT_NE(uma_zalloc(m.newer, kM_WAITOK), nullptr);
  EXPECT_EQ(report::print_ddb_umacache(report::take_snapshot(m.kernel)),
            "              Zone     Size     Used     Free     Requests   Bucket\n"
            "           cache 2       50        1        0            1      254\n"
            "           cache 1      100        0        0            0      126\n");
  const std::string uma = report::print_ddb_uma(report::take_snapshot(m.kernel), true);
  EXPECT_EQ(uma.find("cache"), std::string::npos);
  EXPECT_EQ(m.value("cache_2.keg.name"), "cache zone");
  EXPECT_EQ(m.value("cache_2.keg.ipers"), "(none)");
  EXPECT_EQ(m.value("cache_2.stats.allocs"), "1");
}

// REQ: DDB-09, STREAM-05, STREAM-10
TEST(ZoneReport, TheKegsFreeItemsAreThePrimaryZones) {
  ManyZones m;
  ASSERT_NE(uma_zalloc(m.first, kM_WAITOK), nullptr);  // 62 items of 5 slabs of 15
  const report::Snapshot snapshot = report::take_snapshot(m.kernel);
  const std::string table = report::print_vmstat_z(snapshot, 2);
  EXPECT_EQ(line_of(table, "second 1:"),
            "second 1:               256,      0,       1,      61,       1,   0,   0,   0");
  EXPECT_EQ(line_of(table, "primary:"),
            "primary:                256,      0,       0,      13,       0,   0,   0,   0");
  const std::string uma = report::print_ddb_uma(snapshot, true);
  EXPECT_EQ(line_of(uma, "\"second 1"), "\"second 1\",256,1,61,1,0,62,15872,0");
  EXPECT_EQ(line_of(uma, "\"primary"), "\"primary\",256,0,13,0,0,62,3328,0");
  for (const support::MemstatZone& row : support::memstat_uma(m.stream())) {
    if (row.name == "second 1" || row.name == "primary") {
      EXPECT_EQ(row.secondary, row.name == "second 1");
      EXPECT_EQ(row.kegfree, 13u);  // of the keg, whichever zone
      EXPECT_EQ(row.free(), row.secondary ? 61u : 13u);
      EXPECT_EQ(row.pages, 5u);
    }
  }
}

// REQ: STREAM-05, SYSCTL-03
TEST(ZoneReport, ALimitIsTold) {
  ManyZones m;
  uma_zone_set_max(m.primary, 1000);
  ASSERT_NE(uma_zalloc(m.primary, kM_WAITOK), nullptr);
  EXPECT_EQ(m.value("primary.limit.max_items"), "1000");
  EXPECT_EQ(m.value("primary.limit.items"), std::to_string(1 + m.zone("primary").cpus.at(0).items));
  EXPECT_EQ(
      line_of(report::print_vmstat_z(report::take_snapshot(m.kernel), 2), "primary:").substr(0, 35),
      "primary:                256,   1000");
  uma_zone_set_max(m.newer, 500);  // a cache-only zone's is told by the sysctl alone
  EXPECT_EQ(m.value("cache_2.limit.max_items"), "500");
  EXPECT_EQ(
      line_of(report::print_vmstat_z(report::take_snapshot(m.kernel), 2), "cache 2:").substr(0, 35),
      "cache 2:                 50,      0");
  for (const support::MemstatZone& row : support::memstat_uma(m.stream())) {
    if (row.name == "cache 2") {
      EXPECT_EQ(row.countlimit, 0u);
    }
    if (row.name == "primary") {
      EXPECT_EQ(row.countlimit, 1000u);
      EXPECT_EQ(row.maxpages, 66u);  // 1000 / 15 slabs of a page
      EXPECT_EQ(row.pages, m.zone("primary").items / 15);
    }
  }
}

}  // namespace
}  // namespace dtmalloc
