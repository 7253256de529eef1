// SPDX-License-Identifier: BSD-2-Clause
// uma(9) beside its main road: refusals, reserves, round-robin, empty bucket sizes, fresh pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "kern/kernel_impl.hpp"
#include "smp/section.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

KernelConfig with(bool invariants, int domains = 1) {
  KernelConfig config = small_config(domains);
  config.invariants = invariants;
  config.domains = domains;
  return config;
}

uma_zone* zone_of(Machine& m, std::size_t size, std::uint32_t flags = 0, uma_ctor ctor = nullptr,
                  uma_init init = nullptr, uma_fini fini = nullptr) {
  return uma_zcreate(m.kernel.vm(), "z", size, ctor, nullptr, init, fini, UMA_ALIGN_PTR, flags);
}

// REQ: UMA9-10. A refusal is a failure and no free: a CPU's allocation stays counted, a slab's was
// none.
TEST(Uma9Faith, RefusingConstructorsAreCounted) {
  static int refused;
  for (const std::uint32_t flags : {std::uint32_t{0}, std::uint32_t{UMA_ZONE_NOBUCKET}}) {
    Machine m;
    refused = 1;
    uma_zone* zone = zone_of(m, 64, flags, [](void*, int, void*, int) { return refused; });
    EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
    const ZoneStats row = m.zone("z");
    EXPECT_EQ(row.fail, 1u);
    EXPECT_EQ(row.frees, 0u);
    EXPECT_EQ(row.allocs, flags == 0 ? 1u : 0u);
    refused = 0;
    uma_zfree(zone, uma_zalloc(zone, kM_NOWAIT));
    EXPECT_EQ(m.zone("z").used, flags == 0 ? 1u : 0u);
  }
}

// REQ: UMA9-57. A bucket is filled down to the reserve, not into it.
TEST(Uma9Faith, BucketsLeaveTheReserve) {
  Machine m;
  uma_zone* zone = zone_of(m, 1000);
  uma_prealloc(zone, 12);  // 4 a slab
  uma_zone_reserve(zone, 5);
  ASSERT_NE(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.zone("z").keg_free_items, 5u);
  EXPECT_EQ(m.zone("z").keg_pages, 3u);
}

// REQ: UMA9-84
TEST(Uma9Faith, RoundRobinSlabsSpread) {
  Machine m(with(false, 2));
  uma_zone* zone = zone_of(m, 16, UMA_ZONE_ROUNDROBIN);
  ASSERT_NE(uma_zalloc(zone, kM_WAITOK), nullptr);  // a bucket of 254: 127 of each
  const ZoneStats row = m.zone("z");
  for (const ZoneStats::Domain& domain : row.domains) {
    EXPECT_EQ(domain.pages, 1u);
    EXPECT_EQ(domain.free_items, 252u - 127);
  }
}

// REQ: UMA9-85
TEST(Uma9Faith, FullBucketsAreUsedWhenNoneIsMade) {
  Machine m;
  uma_zone* zone = zone_of(m, 64);
  std::vector<void*> items;
  for (int i = 0; i < 1000; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
  for (void* item : items) uma_zfree(zone, item);
  const ZoneStats full = m.zone("z");
  ASSERT_GT(full.bucket_cache_items, 0u);
  uma_zone_set_maxcache(zone, 1);
  EXPECT_EQ(zone->uz_bucket_size, 0);
  for (std::uint64_t i = full.bucket_cache_items + full.cpus.at(0).items; i > 0; --i)
    ASSERT_NE(uma_zalloc(zone, kM_WAITOK), nullptr);
  EXPECT_EQ(m.zone("z").bucket_cache_items, 0u);
  EXPECT_EQ(m.zone("z").zone_allocs, full.zone_allocs);
}

// REQ: UMA9-60
TEST(Uma9Faith, AssertionsComeBeforeAnythingElse) {
  {
    Machine m(with(true));
    uma_zone* zone = zone_of(m, 64);
    m.kernel.cpus().bind(0);
    uma_zfree(zone, nullptr);
    section_enter();
    EXPECT_EQ(panic_of([&] { uma_zfree(zone, nullptr); }),
              "uma_zfree_debug: called with spinlock or critical section held");
    section_exit();
  }
  {
    Machine m(with(true));
    uma_zone* zone = zone_of(m, 64);
    EXPECT_EQ(panic_of([&] { uma_zalloc(zone, kM_EXEC); }), "uma_zalloc_debug: called with M_EXEC");
    EXPECT_EQ(m.console, "");  // not a word of the missing wait flag
  }
  for (const bool inv : {false, true}) {
    Machine m(with(inv));
    uma_zone* zone = pcpu_zone(m.kernel.vm(), 64);
    EXPECT_EQ(panic_of([&] { uma_zalloc(zone, kM_WAITOK | kM_ZERO); }),
              inv ? "uma_zalloc_debug: allocating from a pcpu zone with M_ZERO" : "");
  }
  for (const bool inv : {false, true}) {
    Machine m(with(inv, 2));
    uma_zone* zone = zone_of(m, 64, UMA_ZONE_ROUNDROBIN);
    EXPECT_EQ(panic_of([&] { uma_zalloc_domain(zone, nullptr, 1, kM_WAITOK); }),
              inv ? "uma_zalloc_domain: called with non-FIRSTTOUCH zone." : "");
  }
}

// REQ: UMA9-86
TEST(Uma9Faith, AnInitThatRefusesUndoesTheSlab) {
  static int inits, finis, refuse_at;
  const uma_init init = [](void*, int, int) { return ++inits == refuse_at ? 1 : 0; };
  const uma_fini fini = [](void*, int) { ++finis; };
  for (const std::size_t size : {std::size_t{1000}, std::size_t{1024}}) {  // headers in and out
    inits = finis = 0;
    refuse_at = 3;
    Machine m;
    uma_zone* zone = zone_of(m, size, UMA_ZONE_NOBUCKET, nullptr, init, fini);
    const unsigned long before = uma_size(m.kernel.vm());
    const std::uint64_t headers = m.zone("UMA Slabs 0").keg_pages;
    EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
    EXPECT_EQ(inits, 3);
    EXPECT_EQ(finis, 2);
    EXPECT_EQ(m.zone("z").keg_pages, 0u);
    EXPECT_EQ(m.zone("z").fail, 1u);
    EXPECT_EQ(uma_size(m.kernel.vm()), before + (m.zone("UMA Slabs 0").keg_pages - headers) * 4096);
    EXPECT_NE(uma_zalloc(zone, kM_NOWAIT), nullptr);
  }
  inits = 0;
  refuse_at = 1;
  Machine m;
  uma_zone* zone = zone_of(m, 1000, UMA_ZONE_NOBUCKET, nullptr, init, fini);
  EXPECT_EQ(panic_of([&] { uma_zalloc(zone, kM_WAITOK); }),
            "not modelled: the init of keg z refuses an item that is waited for");
}

// REQ: UMA9-87. The pages of a zone that is not malloc's come zeroed.
TEST(Uma9Faith, FreshItemsAreZero) {
  Machine m;
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(m.kernel.malloc(4096, &m.type, M_WAITOK));
    std::fill_n(static_cast<char*>(blocks.back()), 4096, 'x');
  }
  for (void* block : blocks) m.kernel.free(block, &m.type);
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
  ASSERT_EQ(m.zone("malloc-4096").keg_pages, 0u);
  uma_zone* zone = zone_of(m, 4000);
  for (int i = 0; i < 64; ++i) {
    const auto* item = static_cast<const char*>(uma_zalloc(zone, kM_WAITOK));
    EXPECT_EQ(std::count(item, item + 4000, 0), 4000);
  }
}

// REQ: UMA9-88
TEST(Uma9Faith, LayoutsOfOtherKegs) {
  EXPECT_EQ(keg_layout(1, 0, false).rsize, 8u);
  EXPECT_EQ(keg_layout(4, 3, false).rsize, 8u);
  // Two of 2048 bytes, of which 48 are padding, leave room for the header behind the second.
  EXPECT_FALSE(keg_layout(2000, 2047, false).offpage);
  EXPECT_EQ(keg_layout(2000, 2047, false).ipers, 2u);
  EXPECT_TRUE(keg_layout(2048, 2047, false).offpage);
  for (const std::uint32_t flag : {UMA_ZONE_VM, UMA_ZFLAG_INTERNAL})
    EXPECT_FALSE(keg_layout(512, 511, false, flag).offpage);
  EXPECT_EQ(keg_layout(2100, 7, false, UMA_ZONE_CONTIG).ppera, 1u);
  EXPECT_EQ(keg_layout(2100, 7, false, UMA_ZONE_CONTIG).ipers, 1u);
  const KegLayout pcpu = keg_layout(64, 7, false, UMA_ZONE_PCPU, 2);
  EXPECT_TRUE(pcpu.offpage);
  EXPECT_EQ(pcpu.ipers, 64u);
  EXPECT_EQ(pcpu.ppera, 2u);
  // Nine of 2104 bytes in five pages, their header in the last.
  Machine m;
  const std::uint32_t flags = zone_of(m, 2100)->uz_flags;
  EXPECT_EQ(flags & (UMA_ZFLAG_OFFPAGE | UMA_ZFLAG_VTOSLAB), UMA_ZFLAG_VTOSLAB);
  EXPECT_EQ(zone_of(m, 256)->uz_flags & UMA_ZFLAG_VTOSLAB, 0u);
  const uma_zone* none = zone_of(m, 64, UMA_ZONE_NOBUCKET);
  EXPECT_EQ(none->uz_bucket_size, 0);
  EXPECT_EQ(none->uz_bucket_size_min, 0);
  EXPECT_EQ(none->uz_bucket_size_max, 0);
}

// REQ: UMA9-44. Numbers are written as in any other sysctl.
TEST(Uma9Faith, KnobsReadNumbers) {
  Machine m;
  const auto write = [&](const char* name, const char* text) {
    return m.kernel.sysctl().find(name)->write(text);
  };
  EXPECT_EQ(write("vm.zone_warnings", "0x10"), 0);
  EXPECT_EQ(m.kernel.sysctl().find("vm.zone_warnings")->read(), "16");
  EXPECT_EQ(write("vm.zone_warnings", "1k"), 0);
  EXPECT_EQ(m.kernel.sysctl().find("vm.zone_warnings")->read(), "1024");
  EXPECT_EQ(write("vm.zone_warnings", "4g"), EINVAL);
  EXPECT_EQ(write("vm.zone_warnings", "x"), EINVAL);
  EXPECT_EQ(write("debug.uma_reclaim", "0x1"), 0);
}

// REQ: UMA9-40. What is asked for during a pass of the worker is forgotten.
TEST(Uma9Faith, WorkerForgetsWhatIsAskedMeanwhile) {
  Machine m;
  Vm& vm = m.kernel.vm();
  int calls = 0;
  const LowmemHandler handler(vm, [&](int) {
    ++calls;
    uma_reclaim_wakeup(vm);
  });
  uma_reclaim_wakeup(vm);
  m.kernel.cpus().clock().advance(10'000'000'000);
  EXPECT_EQ(calls, 1);
  uma_reclaim_wakeup(vm);
  m.kernel.cpus().clock().advance(10'000'000'000);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace dtmalloc
