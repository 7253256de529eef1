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

}  // namespace
}  // namespace dtmalloc
