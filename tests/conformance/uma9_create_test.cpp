// SPDX-License-Identifier: BSD-2-Clause
// uma(9): what the creation of a zone refuses, and when a zone may be destroyed.
#include <gtest/gtest.h>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

std::string refusal(std::size_t size, int align, std::uint32_t flags, bool invariants = false) {
  KernelConfig config = small_config();
  config.invariants = invariants;
  Machine m(config);
  return panic_of([&] {
    uma_zcreate(m.kernel.vm(), "bad", size, nullptr, nullptr, nullptr, nullptr, align, flags);
  });
}

// REQ: UMA9-80
TEST(Uma9Create, SizesAndAlignments) {
  constexpr std::size_t kMi = std::size_t{1} << 20;
  EXPECT_EQ(refusal(0, 7, 0), "not modelled: zone bad has items of 0 bytes");
  EXPECT_EQ(refusal(std::size_t{1} << 32, 7, 0),
            "not modelled: zone bad has items of 4294967296 bytes");
  EXPECT_EQ(refusal(256 * kMi, 7, 0), "not modelled: a slab of zone bad has more than 65535 pages");
  EXPECT_EQ(refusal(256 * kMi - 4095, 4095, 0),
            "not modelled: a slab of zone bad has more than 65535 pages");
  EXPECT_EQ(refusal(256 * kMi - 4096, 4095, 0), "");
  EXPECT_EQ(refusal(64, 48, 0), "invalid zone alignment 48 for \"bad\"");
  EXPECT_EQ(refusal(64, -2, 0), "invalid zone alignment -2 for \"bad\"");
  EXPECT_EQ(refusal(64, 0, 0), "");
  EXPECT_EQ(refusal(64, 7, UMA_ZONE_NOTOUCH | UMA_ZONE_VM),
            "not modelled: zone bad has no place for slab headers");
  Machine m;
  EXPECT_EQ(panic_of([&] {
              uma_zcache_create(
                  m.kernel.vm(), "cache", 0, nullptr, nullptr, nullptr, nullptr,
                  [](void*, void**, int, int, int) { return 0; }, [](void*, void**, int) {},
                  nullptr, 0);
            }),
            "not modelled: zone cache has items of 0 bytes");
}

// REQ: UMA9-81. A copy of a per-CPU item lies in one page.
TEST(Uma9Create, PcpuItemsFitAPage) {
  EXPECT_EQ(refusal(4096, 7, UMA_ZONE_PCPU), "");
  for (const bool inv : {false, true})
    EXPECT_EQ(refusal(4097, 7, UMA_ZONE_PCPU, inv),
              "keg_layout: cannot configure for PCPU: keg=bad, size=4097, flags=0x8000<PCPU>");
}

// REQ: UMA9-82
TEST(Uma9Create, FlagsThatExcludeEachOther) {
  constexpr std::uint32_t kBoth = UMA_ZONE_MAXBUCKET | UMA_ZONE_NOBUCKET;
  EXPECT_EQ(refusal(64, 7, kBoth, true), "Invalid zone flag combination");
  EXPECT_EQ(refusal(64, 7, kBoth, false), "");
}

// REQ: UMA9-83. Also while whoever was woken has not run yet.
TEST(Uma9Create, ZoneThatIsWaitedForIsNotDestroyed) {
  for (const bool woken : {false, true}) {
    Machine m(small_config(2));
    CpuSet& cpus = m.kernel.cpus();
    uma_zone* zone =
        uma_zcreate(m.kernel.vm(), "z", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
    uma_zone_set_max(zone, 1);
    void* item = uma_zalloc(zone, kM_WAITOK);
    cpus.spawn({}, 1, [&] { uma_zalloc(zone, kM_WAITOK); });
    const std::string text = panic_of([&] {
      cpus.spawn({}, 0, [&] {
        cpus.sleep_until(1'000'000);
        if (woken) uma_zfree(zone, item);
        uma_zdestroy(zone);
      });
      cpus.join_all();
    });
    EXPECT_EQ(text, "not modelled: zone z is destroyed while somebody waits for it");
  }
}

}  // namespace
}  // namespace dtmalloc
