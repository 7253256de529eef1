// SPDX-License-Identifier: BSD-2-Clause
// UMA as malloc(9) uses it: the tables of spec/malloc9.md 5.3 and 5.4, item order, counters.
#include <gtest/gtest.h>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

struct LayoutRow {
  std::size_t size;
  int align;
  std::uint32_t ppera;
  bool offpage;
  std::uint32_t ipers, ipers_inv, pgoff, pgoff_inv, efficiency, efficiency_inv;
};

// REQ: UMA9-01
constexpr LayoutRow kMallocLayouts[] = {
    {16, 15, 1, false, 252, 250, 4040, 4008, 98, 97},
    {32, 31, 1, false, 126, 126, 4056, 4040, 98, 98},
    {64, 63, 1, false, 63, 63, 4064, 4056, 98, 98},
    {128, 127, 1, false, 31, 31, 4064, 4056, 96, 96},
    {256, 255, 1, false, 15, 15, 4064, 4056, 93, 93},
    {384, 7, 1, false, 10, 10, 4064, 4056, 93, 93},
    {512, 511, 1, true, 8, 8, 0, 0, 98, 97},
    {1024, 1023, 1, true, 4, 4, 0, 0, 98, 97},
    {2048, 2047, 1, true, 2, 2, 0, 0, 98, 97},
    {4096, 4095, 1, true, 1, 1, 0, 0, 98, 97},
    {8192, 4095, 2, true, 1, 1, 0, 0, 99, 98},
    {16384, 4095, 4, true, 1, 1, 0, 0, 99, 99},
    {32768, 4095, 8, true, 1, 1, 0, 0, 99, 99},
    {65536, 4095, 16, true, 1, 1, 0, 0, 99, 99},
};

TEST(Uma9, KegLayoutsOfMallocZones) {
  for (const LayoutRow& row : kMallocLayouts)
    for (const bool inv : {false, true}) {
      const KegLayout layout = keg_layout(row.size, row.align, inv);
      EXPECT_EQ(layout.rsize, row.size);
      EXPECT_EQ(layout.ppera, row.ppera) << row.size;
      EXPECT_EQ(layout.offpage, row.offpage) << row.size;
      EXPECT_EQ(layout.ipers, inv ? row.ipers_inv : row.ipers) << row.size << " " << inv;
      EXPECT_EQ(layout.pgoff, inv ? row.pgoff_inv : row.pgoff) << row.size << " " << inv;
      EXPECT_EQ(layout.efficiency, inv ? row.efficiency_inv : row.efficiency)
          << row.size << " " << inv;
    }
}

// The zones of a booted kernel are cut that way, with the flags of section 5.1.
TEST(Uma9, ZonesOfABootedKernel) {
  for (const bool inv : {false, true}) {
    KernelConfig config = small_config();
    config.invariants = inv;
    Machine m(config);
    for (const LayoutRow& row : kMallocLayouts) {
      const ZoneStats zone = m.zone("malloc-" + std::to_string(row.size));
      EXPECT_EQ(zone.size, row.size);
      EXPECT_EQ(zone.align, static_cast<std::uint32_t>(row.align));
      EXPECT_EQ(zone.ipers, inv ? row.ipers_inv : row.ipers);
      EXPECT_EQ(zone.bucket_size_max, 254u);
      EXPECT_EQ(zone.flags, (row.offpage ? 0xa10010u : 0x810010u) | (inv ? 0x1000000u : 0u));
    }
  }
}

// REQ: UMA9-02. Bucket zones and their own layouts.
TEST(Uma9, BucketZones) {
  struct Row {
    const char* name;
    std::uint64_t bytes;
    std::uint32_t ipers, bucket_size;
  };
  constexpr Row kRows[] = {{"2 Bucket", 32, 126, 254},  {"4 Bucket", 48, 84, 254},
                           {"8 Bucket", 80, 50, 126},   {"16 Bucket", 144, 28, 62},
                           {"32 Bucket", 256, 15, 62},  {"64 Bucket", 512, 8, 30},
                           {"128 Bucket", 1024, 4, 16}, {"256 Bucket", 2048, 2, 8}};
  Machine m;
  for (const Row& row : kRows) {
    const ZoneStats zone = m.zone(row.name);
    EXPECT_EQ(zone.size, row.bytes);
    EXPECT_EQ(zone.ipers, row.ipers) << row.name;
    EXPECT_EQ(zone.bucket_size, row.bucket_size) << row.name;
  }
}

// REQ: UMA9-03. Initial bucket size, bucket zone and first fill of every class.
TEST(Uma9, FirstFillOfEveryClass) {
  struct Row {
    std::size_t size;
    std::uint32_t bucket_size;
    const char* bucket_zone;
    std::uint64_t slabs, left, left_inv;
  };
  constexpr Row kRows[] = {
      {16, 254, "256 Bucket", 2, 250, 246}, {32, 254, "256 Bucket", 3, 124, 124},
      {64, 254, "256 Bucket", 5, 61, 61},   {128, 126, "128 Bucket", 5, 29, 29},
      {256, 62, "64 Bucket", 5, 13, 13},    {384, 30, "32 Bucket", 3, 0, 0},
      {512, 30, "32 Bucket", 4, 2, 2},      {1024, 16, "16 Bucket", 4, 0, 0},
      {2048, 8, "8 Bucket", 4, 0, 0},       {4096, 2, "2 Bucket", 2, 0, 0},
      {8192, 1, "2 Bucket", 1, 0, 0},       {16384, 1, "2 Bucket", 1, 0, 0},
      {32768, 1, "2 Bucket", 1, 0, 0},      {65536, 1, "2 Bucket", 1, 0, 0},
  };
  for (const bool inv : {false, true})
    for (const Row& row : kRows) {
      KernelConfig config = small_config();
      config.invariants = inv;
      Machine m(config);
      EXPECT_EQ(bucket_select(row.size), row.bucket_size);
      void* block = m.kernel.malloc(row.size, &m.type, M_WAITOK);
      const ZoneStats zone = m.zone("malloc-" + std::to_string(row.size));
      EXPECT_EQ(zone.bucket_size, row.bucket_size) << row.size;
      EXPECT_EQ(zone.keg_pages / zone.ppera, row.slabs) << row.size;
      EXPECT_EQ(zone.keg_free_items, inv ? row.left_inv : row.left) << row.size;
      EXPECT_EQ(zone.cpus.at(0).items, row.bucket_size - 1) << row.size;
      // The bucket that the CPU holds is an item of that zone.
      auto slab = [&](const void* item) {
        return reinterpret_cast<const uma_slab*>(m.kernel.vm().slab_word(item));
      };
      uma_zone& cached = *slab(block)->us_keg->zone;
      EXPECT_STREQ(slab(cached.cache_or_null(0)->uc_allocbucket)->us_keg->uk_name, row.bucket_zone)
          << row.size;
    }
}

// REQ: UMA9-04. Item sizes between the classes of the table.
TEST(Uma9, BucketSizeByItemSize) {
  EXPECT_EQ(bucket_select(1), 254);
  EXPECT_EQ(bucket_select(64), 254);
  EXPECT_EQ(bucket_select(65), 126);
  EXPECT_EQ(bucket_select(129), 62);
  EXPECT_EQ(bucket_select(3072), 4);
  EXPECT_EQ(bucket_select(3073), 2);
  EXPECT_EQ(bucket_select(4097), 1);
  EXPECT_EQ(bucket_select(8193), 1);
}

// REQ: UMA9-05. The alloc bucket is refilled by a swap with the free bucket, so what was freed last
// comes back first; a bucket that is full goes to the zone.
TEST(Uma9, FullBucketsGoToTheZone) {
  Machine m;
  std::vector<void*> blocks;
  for (int i = 0; i < 3 * 254; ++i) blocks.push_back(m.kernel.malloc(16, &m.type, M_WAITOK));
  for (void* block : blocks) m.kernel.free(block, &m.type);
  const ZoneStats zone = m.zone("malloc-16");
  EXPECT_EQ(zone.used, 0u);
  EXPECT_EQ(zone.cpus.at(0).items, 508u);    // two full buckets
  EXPECT_EQ(zone.bucket_cache_items, 254u);  // one on the zone's list
  EXPECT_EQ(zone.free, 4u * 252);            // slabs stay
  EXPECT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), blocks.back());
}

// REQ: UMA9-06. A size-1 zone has buckets that hold two frees but imports one item.
TEST(Uma9, LargeClassesImportOneItem) {
  Machine m;
  void* p = m.kernel.malloc(65536, &m.type, M_WAITOK);
  EXPECT_EQ(m.zone("malloc-65536").free, 0u);
  void* q = m.kernel.malloc(65536, &m.type, M_WAITOK);
  void* r = m.kernel.malloc(65536, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  m.kernel.free(q, &m.type);
  m.kernel.free(r, &m.type);
  const ZoneStats zone = m.zone("malloc-65536");
  EXPECT_EQ(zone.keg_pages, 48u);
  EXPECT_EQ(zone.cpus.at(0).items, 3u);
  EXPECT_EQ(m.kernel.malloc(65536, &m.type, M_WAITOK), r);
}

// REQ: UMA9-07. The keg prefers partial slabs, then free ones, and takes the lowest free item.
TEST(Uma9, KegChoosesPartialSlabs) {
  Machine m;
  uma_zone* zone = uma_zcreate(m.kernel.vm(), "kegs", 1000, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, UMA_ZONE_NOBUCKET);
  m.kernel.cpus().bind_any();
  std::vector<void*> items;
  for (int i = 0; i < 12; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
  EXPECT_EQ(static_cast<std::byte*>(items[1]) - static_cast<std::byte*>(items[0]), 1000);
  EXPECT_EQ(m.zone("kegs").keg_pages, 3u);
  uma_zfree(zone, items[9]);
  uma_zfree(zone, items[1]);
  uma_zfree(zone, items[2]);
  for (int i = 4; i < 8; ++i) uma_zfree(zone, items[static_cast<std::size_t>(i)]);
  EXPECT_EQ(m.zone("kegs").keg_free_slabs, 1u);
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), items[1]);  // the partial slab put first last
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), items[2]);
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), items[9]);
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), items[4]);  // the free slab
  EXPECT_EQ(m.zone("kegs").requests, 16u);
}

// REQ: UMA9-08. Off-page slabs take their header from "UMA Slabs 0".
TEST(Uma9, OffpageHeadersComeFromTheirZone) {
  Machine m;
  m.kernel.malloc(2048, &m.type, M_WAITOK);
  EXPECT_EQ(m.zone("UMA Slabs 0").size, 80u);
  EXPECT_EQ(m.zone("UMA Slabs 1").size, 112u);
  std::uint64_t slabs = 0;
  for (const ZoneStats& zone : m.kernel.zones())
    if ((zone.flags & UMA_ZFLAG_OFFPAGE) != 0) slabs += zone.keg_pages / zone.ppera;
  EXPECT_GE(slabs, 4u);
  EXPECT_EQ(m.zone("UMA Slabs 0").used, slabs);
  KernelConfig config = small_config();
  config.invariants = true;
  Machine inv(config);
  EXPECT_EQ(inv.zone("UMA Slabs 0").size, 112u);
  EXPECT_EQ(inv.zone("UMA Slabs 1").size, 176u);
}

// REQ: UMA9-09. uma_kmem_total is the pages of all slabs and large blocks.
TEST(Uma9, KmemTotalIsTheSlabs) {
  Machine m;
  for (std::size_t size = 1; size < 70000; size = size * 3 + 1)
    m.kernel.malloc(size, &m.type, M_WAITOK);
  std::uint64_t pages = 0;
  for (const ZoneStats& zone : m.kernel.zones()) pages += zone.keg_pages;
  EXPECT_EQ(m.kernel.uma_kmem_total(), pages * 4096);
  EXPECT_EQ(m.kernel.total_pages() - m.kernel.free_pages(), pages);
}

// REQ: UMA9-10. Constructors see the argument; one that fails makes the allocation fail.
TEST(Uma9, ConstructorsAndDestructors) {
  Machine m;
  static int made, unmade, refused;
  static void* seen;
  made = unmade = refused = 0;
  uma_zone* zone = uma_zcreate(
      m.kernel.vm(), "ctor", 64,
      [](void*, int size, void* arg, int) {
        EXPECT_EQ(size, 64);
        seen = arg;
        ++made;
        return refused;
      },
      [](void*, int, void*) { ++unmade; }, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  void* item = uma_zalloc_arg(zone, &m, kM_WAITOK);
  EXPECT_EQ(seen, &m);
  uma_zfree_arg(zone, item, nullptr);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(unmade, 1);
  refused = 1;
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.zone("ctor").fail, 1u);
  EXPECT_EQ(m.zone("ctor").used, 1u);  // the CPU counted it, and no free was
}

// REQ: UMA9-11. Destroying a zone gives its pages back, or says what is lost.
TEST(Uma9, DestroyingAZone) {
  Machine m;
  const std::uint64_t free_pages = m.kernel.free_pages();
  uma_zone* zone = uma_zcreate(m.kernel.vm(), "gone", 100, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, UMA_ZONE_NOBUCKET);
  uma_zfree(zone, uma_zalloc(zone, kM_WAITOK));
  uma_zdestroy(zone);
  EXPECT_EQ(m.kernel.free_pages(), free_pages);
  EXPECT_EQ(m.console, "");
  zone =
      uma_zcreate(m.kernel.vm(), "kept", 100, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  uma_zalloc(zone, kM_WAITOK);
  uma_zdestroy(zone);
  EXPECT_EQ(m.console, "Freed UMA keg (kept) was not empty (1 items).  Lost 1 pages of memory.\n");
}

// REQ: UMA9-12. What is not modelled refuses.
TEST(Uma9, UnmodelledZonesAreRefused) {
  Machine m;
  EXPECT_EQ(panic_of([&] {
              uma_zcreate(m.kernel.vm(), "x", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR,
                          UMA_ZONE_SMR);
            }),
            "not modelled: UMA_ZONE_SMR: readers that hold no reference");
}

// REQ: UMA9-13. The thresholds of a domain.
TEST(Uma9, FreePageThresholds) {
  const PageThresholds small = PageThresholds::of(256);
  EXPECT_EQ(small.interrupt_free_min, 2u);
  EXPECT_EQ(small.free_reserved, 66u);
  EXPECT_EQ(small.free_min, 70u);
  EXPECT_EQ(small.free_severe, 68u);
  EXPECT_EQ(small.free_target, 82u);
  const PageThresholds large = PageThresholds::of(2097152);  // 8 GiB
  EXPECT_EQ(large.free_reserved, 66u + 2730);
  EXPECT_EQ(large.free_min, 4u + (2097152 - 1024) / 200 + 2796);
}

// REQ: UMA9-14. A machine that boots below its minimum makes no buckets: every allocation comes
// from a slab, and a failure counts once.
TEST(Uma9, BucketsAreDisabled_OnATinyMachine) {
  Machine m(small_config(1, 256 << 10));
  void* p = m.kernel.malloc(16, &m.type, M_NOWAIT);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(m.zone("malloc-16").cpus.at(0).items, 0u);
  EXPECT_EQ(m.zone("malloc-16").keg_free_items, 251u);
  EXPECT_EQ(m.zone("256 Bucket").requests, 0u);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.zone("malloc-16").keg_free_items, 252u);
  m.exhaust();
  while (m.kernel.malloc(100, &m.type, M_NOWAIT) != nullptr) {
  }
  EXPECT_EQ(m.zone("malloc-128").fail, 1u);
}

}  // namespace
}  // namespace dtmalloc
