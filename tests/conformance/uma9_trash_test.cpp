// SPDX-License-Identifier: BSD-2-Clause
// INVARIANTS in UMA: assertions of each call, junk in free items, the divisor
// (spec/malloc9.md 5.9, 6.1, 6.2).
#include <gtest/gtest.h>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

KernelConfig invariants() {
  KernelConfig config = small_config();
  config.invariants = true;
  return config;
}

uma_zone* plain(Machine& m, std::size_t size, std::uint32_t flags = 0) {
  return uma_zcreate(m.kernel.vm(), "plain", size, nullptr, nullptr, nullptr, nullptr,
                     UMA_ALIGN_PTR, flags);
}

// REQ: UMA9-60
TEST(Uma9Trash, CallsAreAsserted) {
  {
    Machine m(invariants());
    uma_zone* zone = plain(m, 64);
    EXPECT_EQ(panic_of([&] { uma_zalloc(zone, kM_NOWAIT | kM_EXEC); }),
              "uma_zalloc_debug: called with M_EXEC");
  }
  {
    Machine m(invariants());
    uma_zone* zone = plain(m, 64);
    m.kernel.cpus().bind(0);
    EXPECT_EQ(panic_of([&] {
                const CriticalSection section;
                uma_zalloc(zone, kM_NOWAIT);
              }),
              "uma_zalloc_debug: called within spinlock or critical section");
  }
  {
    Machine m(invariants());
    uma_zone* zone = plain(m, 64);
    void* item = uma_zalloc(zone, kM_NOWAIT);
    EXPECT_EQ(panic_of([&] {
                const CriticalSection section;
                uma_zfree(zone, item);
              }),
              "uma_zfree_debug: called with spinlock or critical section held");
  }
  for (const int domains : {1, 2}) {
    KernelConfig config = invariants();
    config.domains = domains;
    config.cpus = 2;
    Machine m(config);
    uma_zone* zone = plain(m, 64);
    EXPECT_EQ(panic_of([&] { uma_zalloc_domain(zone, nullptr, 0, kM_NOWAIT | kM_EXEC); }),
              "uma_zalloc_debug: called with M_EXEC");
  }
}

// REQ: UMA9-60. A kernel without INVARIANTS asserts none of it.
TEST(Uma9Trash, NothingIsAssertedInProduction) {
  Machine m;
  uma_zone* zone = plain(m, 64);
  EXPECT_NE(uma_zalloc(zone, kM_NOWAIT | kM_EXEC), nullptr);
  const CriticalSection section;
  uma_zfree(zone, uma_zalloc(zone, 0));
  EXPECT_EQ(m.console, "");
}

// REQ: UMA9-61. Neither or both wait flags: printed ten times, with the call sites.
TEST(Uma9Trash, BadWaitFlagsPrintTenTimes) {
  Machine m(invariants());
  uma_zone* zone = plain(m, 64);
  m.kernel.cpus().current_thread().call_sites = {"foo_attach+0x1c", "foo_alloc+0x8"};
  EXPECT_NE(uma_zalloc(zone, 0), nullptr);
  const std::string line =
      "uma_zalloc* called with bad WAIT flags:\n  at foo_alloc+0x8\n  at foo_attach+0x1c\n";
  EXPECT_EQ(m.console, line);
  for (int i = 0; i < 20; ++i) uma_zalloc(zone, kM_NOWAIT | kM_WAITOK);
  EXPECT_EQ(m.console.size(), 10 * line.size());
  EXPECT_NE(uma_zalloc(zone, kM_NOWAIT), nullptr);
}

// REQ: UMA9-62. A plain zone's free items hold junk in every word; the text names the zone.
TEST(Uma9Trash, PlainZonesNoticeWritesAfterFree) {
  Machine m(invariants());
  uma_zone* zone = plain(m, 64);
  EXPECT_NE(zone->uz_flags & UMA_ZFLAG_TRASH, 0u);
  EXPECT_NE(zone->uz_flags & UMA_ZFLAG_CTORDTOR, 0u);
  auto* words = static_cast<std::uint64_t*>(uma_zalloc(zone, kM_WAITOK));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(words[i], 0xdeadc0dedeadc0deu);
  uma_zfree(zone, words);
  words[7] = 0x123;  // the last word counts here
  char expected[100];
  std::snprintf(expected, sizeof expected,
                "Memory modified after free %#lx (64, plain) + 56 = 123\n",
                static_cast<unsigned long>(m.kernel.addresses().to_simulated(words)));
  EXPECT_EQ(panic_of([&] { uma_zalloc(zone, kM_WAITOK); }), expected);
}

// REQ: UMA9-62. A slab that goes is looked at, without a name.
TEST(Uma9Trash, SlabsThatGoAreLookedAt) {
  Machine m(invariants());
  uma_zone* zone = plain(m, 64);
  auto* words = static_cast<std::uint64_t*>(uma_zalloc(zone, kM_WAITOK));
  uma_zfree(zone, words);
  words[0] = 1;
  const std::string text = panic_of([&] { uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN_CPU); });
  EXPECT_NE(text.find(" (64, ) + 0 = 1\n"), std::string::npos) << text;
}

// REQ: UMA9-62. Not with an init or fini, ZINIT, NOTOUCH or NOFREE; not malloc zones, whose junk
// is mtrash's.
TEST(Uma9Trash, SomeZonesHoldNoJunk) {
  Machine m(invariants());
  for (const std::uint32_t flag : {UMA_ZONE_ZINIT, UMA_ZONE_NOTOUCH, UMA_ZONE_NOFREE})
    EXPECT_EQ(plain(m, 64, flag)->uz_flags & UMA_ZFLAG_TRASH, 0u) << flag;
  uma_zone* initialised = uma_zcreate(
      m.kernel.vm(), "init", 64, nullptr, nullptr, [](void*, int, int) { return 0; }, nullptr,
      UMA_ALIGN_PTR, 0);
  EXPECT_EQ(initialised->uz_flags & UMA_ZFLAG_TRASH, 0u);
  EXPECT_EQ(m.zone("malloc-16").flags & UMA_ZFLAG_TRASH, 0u);
  EXPECT_NE(m.zone("16 Bucket").flags & UMA_ZFLAG_TRASH, 0u);
  Machine production;
  EXPECT_EQ(plain(production, 64)->uz_flags & UMA_ZFLAG_TRASH, 0u);
}

// REQ: UMA9-63. vm.debug.divisor: every n-th item by its number in the machine; 0 none.
TEST(Uma9Trash, DivisorSkipsItems) {
  Machine m(invariants());
  m.kernel.vm().dbg_divisor = 4;
  uma_zone* zone = plain(m, 1024, UMA_ZONE_NOBUCKET);  // 4 a slab, off-page
  std::vector<void*> items;
  for (int i = 0; i < 8; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
  // The slab headers are items too: count what this zone alone adds.
  const std::uint64_t trashed = m.kernel.vm().dbg_trashed, skipped = m.kernel.vm().dbg_skipped;
  for (void* item : items) uma_zfree(zone, item);
  EXPECT_EQ(m.kernel.vm().dbg_trashed - trashed, 2u);
  EXPECT_EQ(m.kernel.vm().dbg_skipped - skipped, 6u);
  EXPECT_EQ(m.kernel.sysctl().find("vm.debug.skipped")->read(),
            std::to_string(m.kernel.vm().dbg_skipped));
  EXPECT_EQ(m.kernel.sysctl().find("vm.debug.divisor")->read(), "4");
  // Index page * 4 + 1 is no multiple of 4: nobody looks.
  static_cast<std::uint64_t*>(items[1])[0] = 1;
  static_cast<std::uint64_t*>(items[4])[0] = 1;
  const std::string text = panic_of([&] {
    for (int i = 0; i < 8; ++i) uma_zalloc(zone, kM_WAITOK);
  });
  char expected[100];
  std::snprintf(expected, sizeof expected,
                "Memory modified after free %#lx (1024, plain) + 0 = 1\n",
                static_cast<unsigned long>(m.kernel.addresses().to_simulated(items[4])));
  EXPECT_EQ(text, expected);
}

// REQ: UMA9-63. It spares a malloc zone's debug bits, never its junk.
TEST(Uma9Trash, DivisorSparesTheDebugBitsOnly) {
  Machine m(invariants());
  m.kernel.vm().dbg_divisor = 0;
  void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
  void* other = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  m.kernel.free(p, &m.type);  // twice in the bucket, unseen
  EXPECT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), p);
  EXPECT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), p);
  EXPECT_EQ(m.kernel.vm().dbg_skipped.load(), 0u);
  m.kernel.free(other, &m.type);
  static_cast<std::uint64_t*>(other)[0] = 1;
  EXPECT_NE(panic_of([&] { m.kernel.malloc(16, &m.type, M_WAITOK); }).find("(16, malloc-16, T)"),
            std::string::npos);
}

}  // namespace
}  // namespace dtmalloc
