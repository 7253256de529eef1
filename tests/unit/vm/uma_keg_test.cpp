// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <set>

#include "support/kernel_fixture.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

// Whatever the item, a slab holds its items and, inline, the header behind them.
TEST(UmaKeg, EveryLayoutFits) {
  for (const bool inv : {false, true})
    for (std::size_t size = 1; size < 70000; size += size < 600 ? 1 : 511)
      for (const int align : {0, 7, 63, 4095}) {
        const KegLayout layout = keg_layout(size, align, inv);
        ASSERT_GE(layout.ipers, 1u) << size;
        ASSERT_LE(layout.ipers, 512u) << size;
        ASSERT_EQ(layout.rsize % (static_cast<std::uint32_t>(align) + 1), 0u);
        const std::size_t bytes = layout.ppera * kPageBytes;
        // The last item needs no padding behind it.
        const std::size_t items = std::size_t{layout.ipers} * layout.rsize - (layout.rsize - size);
        if (layout.offpage) {
          ASSERT_LE(items, bytes) << size;
        } else {
          ASSERT_LE(items, layout.pgoff) << size;
          ASSERT_EQ(layout.pgoff + slab_header_size(layout.ipers, inv), bytes) << size;
        }
      }
}

TEST(UmaKeg, WastefulSizesGetLargerSlabs) {
  EXPECT_GE(keg_layout(3000, 7, false).ppera, 2u);
  EXPECT_GE(keg_layout(3000, 7, false).efficiency, 90u);
  EXPECT_GE(keg_layout(5000, 7, false).efficiency, 90u);
}

TEST(UmaKeg, ItemsOfOneSlabDoNotOverlap) {
  test::Machine m;
  m.kernel.cpus().bind_any();
  for (const std::size_t size : {1u, 24u, 100u, 3000u, 5000u}) {
    uma_zone* zone = uma_zcreate(m.kernel.vm(), "z", size, nullptr, nullptr, nullptr, nullptr, 7,
                                 UMA_ZONE_NOBUCKET);
    std::set<std::byte*> items;
    const auto rsize = static_cast<std::ptrdiff_t>(zone->uz_keg->uk_rsize);
    for (int i = 0; i < 600; ++i)
      items.insert(static_cast<std::byte*>(uma_zalloc(zone, kM_WAITOK)));
    ASSERT_EQ(items.size(), 600u);
    const std::byte* before = nullptr;
    for (std::byte* item : items) {
      if (before != nullptr) {
        ASSERT_GE(item - before, rsize);
      }
      before = item;
    }
    for (std::byte* item : items) uma_zfree(zone, item);
    EXPECT_EQ(check_zone(*zone), "");
    uma_zdestroy(zone);
  }
}

TEST(UmaKeg, InitRunsOncePerItem) {
  test::Machine m;
  m.kernel.cpus().bind_any();
  static int inits, finis;
  inits = finis = 0;
  uma_zone* zone = uma_zcreate(
      m.kernel.vm(), "z", 512, nullptr, nullptr, [](void*, int, int) { return ++inits, 0; },
      [](void*, int) { ++finis; }, 7, UMA_ZONE_NOBUCKET);
  for (int i = 0; i < 5; ++i) uma_zfree(zone, uma_zalloc(zone, kM_WAITOK));
  EXPECT_EQ(inits, static_cast<int>(zone->uz_keg->uk_ipers));
  uma_zdestroy(zone);
  EXPECT_EQ(finis, inits);
}

}  // namespace
}  // namespace dtmalloc
