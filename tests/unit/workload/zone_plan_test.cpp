// SPDX-License-Identifier: BSD-2-Clause
// A plan for idle items against the zones themselves.
#include "workload/zone_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/kernel_fixture.hpp"

namespace dtmalloc::workload {
namespace {

// REQ: ZIMPORT-16
TEST(ZonePlan, SaysWhatAZoneHolds) {
  for (const std::size_t size : {16u, 32u, 64u, 128u, 256u, 384u, 512u, 1024u, 2048u, 4096u}) {
    const int align = size == 384 ? 7 : static_cast<int>(size - 1);
    for (const std::uint64_t used : {0u, 1u, 62u, 254u, 255u, 1000u, 5000u}) {
      for (const std::uint64_t free : {0u, 1u, 61u, 300u, 4000u}) {
        if (used + free == 0) continue;
        const ZonePlan plan = plan_zone(used, free, size, align);
        test::Machine m(test::small_config(1));
        std::vector<void*> idle;
        for (std::uint64_t i = 0; i < used; ++i) m.kernel.malloc(size, &m.type, M_WAITOK);
        for (std::uint64_t i = 0; i < plan.extra; ++i)
          idle.push_back(m.kernel.malloc(size, &m.type, M_WAITOK));
        for (void* block : idle) m.kernel.free(block, &m.type);
        const ZoneStats zone = m.zone("malloc-" + std::to_string(size));
        EXPECT_EQ(zone.used, used);
        EXPECT_EQ(zone.free, plan.free) << size << " " << used << " " << free;
      }
    }
  }
}

// REQ: ZIMPORT-16
TEST(ZonePlan, IsAsNearAsBucketsAndSlabsAllow) {
  // malloc-128: buckets of 126, slabs of 31.
  EXPECT_EQ(plan_zone(0, 126, 128, 127).free, 155u);  // one fill: 5 slabs
  EXPECT_EQ(plan_zone(0, 126, 128, 127).extra, 1u);
  EXPECT_EQ(plan_zone(100, 55, 128, 127).free, 55u);
  EXPECT_EQ(plan_zone(100, 55, 128, 127).extra, 0u);
  EXPECT_EQ(plan_zone(100, 200, 128, 127).free, 179u);  // 9 slabs
  EXPECT_EQ(plan_zone(0, 0, 128, 127).extra, 0u);
  EXPECT_EQ(plan_zone(std::uint64_t{1} << 60, 1, 128, 127).extra, 0u);
}

}  // namespace
}  // namespace dtmalloc::workload
