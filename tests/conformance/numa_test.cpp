// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) from sets of NUMA domains.
// Expectations: spec/malloc9.md 3.3 to 3.9, 5.11a.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/kernel_fixture.hpp"

// driver.c
extern "C" {
malloc_type* driver_type(void);
void driver_domains(void* blocks[5]);
}

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;

KernelConfig numa_config(int domains, int cpus = 4, std::uint64_t mem_of_domain = 8 << 20) {
  KernelConfig config = test::small_config(cpus, mem_of_domain * static_cast<unsigned>(domains));
  config.domains = domains;
  return config;
}

struct Numa : testing::Test {
  Machine m{numa_config(4)};
  Kernel& k = m.kernel;
  Vm& vm = k.vm();
  void SetUp() override { k.cpus().bind(0); }

  int domain(const void* addr) const { return page_info(vm, addr).domain; }
  // The domains of `count` small blocks of a set.
  std::vector<int> small(const domainset* set, int count) {
    std::vector<int> out;
    for (int i = 0; i < count; ++i)
      out.push_back(domain(k.malloc_domainset(100, &m.type, set, M_NOWAIT)));
    return out;
  }
  std::vector<int> large(const domainset* set, int count) {
    std::vector<int> out;
    for (int i = 0; i < count; ++i)
      out.push_back(domain(k.malloc_domainset(70000, &m.type, set, M_NOWAIT)));
    return out;
  }
  // Takes pages of a domain until `left` are free.
  void exhaust(int d, std::uint64_t left = 2) {
    malloc_type& hog = k.define_type("M_HOG" + std::to_string(d), "hog");
    while (free_pages(d) > left)
      ASSERT_NE(k.contigmalloc_domainset(4096, &hog, DOMAINSET_FIXED(d), M_NOWAIT), nullptr);
  }
  std::uint64_t free_pages(int d) const {
    return vm.domains[static_cast<std::size_t>(d)].free_count.load();
  }
};

using Domains = std::vector<int>;

// REQ: NUMA-01
TEST(NumaMachine, CpusAndPagesAreSplitEvenly) {
  Machine m(numa_config(2, 5, 8 << 20));
  Domains domains;
  for (int id = 0; id < 5; ++id) domains.push_back(m.kernel.cpus().cpu(id).domain);
  EXPECT_EQ(domains, (Domains{0, 0, 0, 1, 1}));  // id * 2 / 5
  m.kernel.cpus().bind(7);                       // the set grows
  EXPECT_EQ(m.kernel.cpus().cpu(6).domain, 0);
  EXPECT_EQ(m.kernel.cpus().cpu(7).domain, 1);
  EXPECT_EQ(m.kernel.total_pages(), 4096u);
  EXPECT_EQ(m.kernel.free_pages(), 4096u);
  EXPECT_EQ(m.kernel.vm().domains[0].page_count, 2048u);
  EXPECT_EQ(m.kernel.vm().domains[1].page_count, 2048u);
}

TEST(NumaMachine, AnOddPageGoesToALaterDomain) {
  KernelConfig config = numa_config(3);
  config.mem = 1000 * 4096;
  Machine m(config);
  std::uint64_t sum = 0;
  for (std::size_t d = 0; d < 3; ++d) sum += m.kernel.vm().domains[d].page_count;
  EXPECT_EQ(sum, 1000u);
  EXPECT_EQ(m.kernel.vm().domains[0].page_count, 333u);
}

TEST(NumaMachine, ChecksItsConfiguration) {
  for (const int domains : {0, -1, 9}) {
    KernelConfig config;
    config.domains = domains;
    ASSERT_TRUE(Kernel::check(config).has_value());
    EXPECT_EQ(Kernel::check(config)->tag, "KERNEL_DOMAINS");
  }
  KernelConfig config = numa_config(8);
  config.mem = 8 * 256 * 1024 - 4096;
  EXPECT_EQ(Kernel::check(config).value().tag, "KERNEL_MEM");
}

// REQ: NUMA-02
TEST_F(Numa, ThresholdsAreOfADomain) {
  const PageThresholds expected = PageThresholds::of(2048);
  for (std::size_t d = 0; d < 4; ++d) {
    EXPECT_EQ(vm.domains[d].thresholds.free_min, expected.free_min);
    EXPECT_EQ(vm.domains[d].thresholds.free_target, expected.free_target);
  }
  exhaust(2);
  EXPECT_EQ(free_pages(2), 2u);
  EXPECT_EQ(k.contigmalloc_domainset(4096, &m.type, DOMAINSET_FIXED(2), M_NOWAIT), nullptr);
  EXPECT_NE(k.contigmalloc_domainset(8192, &m.type, DOMAINSET_FIXED(2), M_NOWAIT | M_USE_RESERVE),
            nullptr);
  EXPECT_EQ(free_pages(2), 0u);
  EXPECT_EQ(free_pages(1), 2048u);
}

// REQ: NUMA-03
TEST_F(Numa, RoundRobinTakesTurns) {
  EXPECT_EQ(large(DOMAINSET_RR(), 6), (Domains{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(small(DOMAINSET_RR(), 3), (Domains{2, 3, 0}));
}

// REQ: NUMA-03. The sets say in full which domains they hold.
TEST(NumaSets, CountAndOrderAreThoseOfTheMask) {
  const auto order = [](const domainset& set) {
    return std::vector<int>(set.ds_order, set.ds_order + set.ds_cnt);
  };
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  for (const domainset* set : {DOMAINSET_RR(), DOMAINSET_FT(), DOMAINSET_IL()})
    EXPECT_EQ(order(*set), all);
  for (int domain = 0; domain < MAXMEMDOM; ++domain) {
    EXPECT_EQ(order(*DOMAINSET_PREF(domain)), all);
    EXPECT_EQ(DOMAINSET_PREF(domain)->ds_prefer, domain);
    EXPECT_EQ(order(*DOMAINSET_FIXED(domain)), std::vector<int>{domain});
  }
  EXPECT_EQ(order(make_domainset(0b1010, DOMAINSET_POLICY_ROUNDROBIN)), (std::vector<int>{1, 3}));
  EXPECT_EQ(DOMAINSET_RR()->ds_link.le_next, nullptr);
}

TEST_F(Numa, FirstTouchIsTheDomainOfTheCpu) {
  EXPECT_EQ(small(DOMAINSET_FT(), 2), (Domains{0, 0}));
  k.cpus().bind(2);
  EXPECT_EQ(small(DOMAINSET_FT(), 2), (Domains{2, 2}));
  EXPECT_EQ(large(DOMAINSET_FT(), 1), (Domains{2}));
  // A CPU outside the set: round-robin.
  const domainset others = make_domainset(0b1010, DOMAINSET_POLICY_FIRSTTOUCH);
  EXPECT_EQ(large(&others, 3), (Domains{1, 3, 1}));
}

TEST_F(Numa, PreferAndFixed) {
  EXPECT_EQ(large(DOMAINSET_PREF(3), 2), (Domains{3, 3}));
  EXPECT_EQ(large(DOMAINSET_FIXED(1), 2), (Domains{1, 1}));
  exhaust(3);
  EXPECT_NE(large(DOMAINSET_PREF(3), 1), (Domains{3}));
  EXPECT_EQ(large(DOMAINSET_FIXED(3), 1), (Domains{-1}));
  // A machine of 4 domains has no domain 5: preferring it is no preference, fixing it is empty.
  EXPECT_NE(large(DOMAINSET_PREF(5), 1), (Domains{-1}));
  EXPECT_EQ(large(DOMAINSET_FIXED(5), 1), (Domains{-1}));
}

TEST_F(Numa, InterleaveBeginsWithTheLowest) {
  EXPECT_EQ(large(DOMAINSET_IL(), 2), (Domains{0, 0}));
  const domainset upper = make_domainset(0b1100, DOMAINSET_POLICY_INTERLEAVE);
  EXPECT_EQ(large(&upper, 1), (Domains{2}));
}

TEST_F(Numa, ASetOfOnesOwn) {
  const domainset two = make_domainset(0b0101, DOMAINSET_POLICY_ROUNDROBIN);
  EXPECT_EQ(large(&two, 4), (Domains{0, 2, 0, 2}));
  const domainset mine = make_domainset(0b0110, DOMAINSET_POLICY_PREFER, 2);
  EXPECT_EQ(large(&mine, 2), (Domains{2, 2}));
}

// The round-robin counter is the thread's: one thread's calls do not turn another's.
TEST_F(Numa, EachThreadHasItsTurn) {
  Domains other;
  large(DOMAINSET_RR(), 1);
  k.cpus().spawn({}, 1, [&] { other = large(DOMAINSET_RR(), 2); });
  k.cpus().join_all();
  EXPECT_EQ(other, (Domains{0, 1}));
  EXPECT_EQ(large(DOMAINSET_RR(), 1), (Domains{1}));
}

// REQ: NUMA-04
TEST_F(Numa, DomainsBelowTheirMinimumComeLast) {
  const std::uint64_t min = vm.domains[0].thresholds.free_min;
  exhaust(0, min - 1);
  exhaust(1, min - 1);
  EXPECT_EQ(large(DOMAINSET_PREF(0), 1), (Domains{2}));  // the counter turns past 1
  exhaust(2, min - 1);
  exhaust(3, min - 1);
  // All are: the second phase begins with the policy's choice.
  EXPECT_EQ(large(DOMAINSET_PREF(1), 1), (Domains{1}));
}

TEST_F(Numa, NoDomainIsAskedTwiceInASweep) {
  for (int d = 0; d < 4; ++d) exhaust(d);
  for (const domainset* set : {DOMAINSET_RR(), DOMAINSET_FT(), DOMAINSET_PREF(2), DOMAINSET_IL()}) {
    const std::uint64_t fails = m.zone("malloc-4096").fail;
    EXPECT_EQ(k.malloc_domainset(4096, &m.type, set, M_NOWAIT), nullptr);
    EXPECT_EQ(m.zone("malloc-4096").fail - fails, 4u);
  }
}

// The iterator itself, with half of the domains below their minimum.
TEST_F(Numa, TheWalkVisitsEachOnce) {
  exhaust(1, 10);
  exhaust(2, 10);
  std::uint32_t turn = 1;
  int flags = m::WAITOK;
  int domain = -1;
  vm_domainset_iter di;
  Domains visited;
  // M_WAITOK is gone from the flags; the walk knows it.
  ASSERT_EQ(vm_domainset_iter_policy_ref_init(di, vm, *DOMAINSET_RR(), &turn, &domain, &flags), 0);
  EXPECT_EQ(flags, m::NOWAIT);
  di.di_flags = m::NOWAIT;
  do visited.push_back(domain);
  while (vm_domainset_iter_policy(di, &domain) == 0);
  EXPECT_EQ(visited.size(), 4u);
  EXPECT_EQ(std::set<int>(visited.begin(), visited.end()).size(), 4u);
  EXPECT_EQ(std::set<int>(visited.begin(), visited.begin() + 2), (std::set<int>{0, 3}));
}

// REQ: NUMA-05
TEST(NumaWait, PagesOfItsOwnDomainsWakeASleeper) {
  Machine m(numa_config(2, 2));
  Kernel& k = m.kernel;
  Vm& vm = k.vm();
  k.cpus().bind(0);
  std::vector<void*> blocks;
  while (void* block = k.contigmalloc_domainset(4096, &m.type, DOMAINSET_FIXED(1), M_NOWAIT))
    blocks.push_back(block);
  void* elsewhere = k.malloc_domainset(70000, &m.type, DOMAINSET_FIXED(0), M_WAITOK);
  int domain = -1;
  k.cpus().spawn({}, 0, [&] {
    void* p = k.malloc_domainset(100, &m.type, DOMAINSET_FIXED(1), M_WAITOK);
    domain = page_info(vm, p).domain;
  });
  for (int i = 0; i < 100; ++i) k.cpus().operation_done();
  EXPECT_EQ(vm.page_waiters.load(), 1);
  const std::uint64_t fails = m.zone("malloc-128").fail;
  EXPECT_GT(fails, 0u);  // a try fails, none waits
  k.free(elsewhere, &m.type);
  for (int i = 0; i < 100; ++i) k.cpus().operation_done();
  EXPECT_EQ(vm.page_waiters.load(), 1);
  EXPECT_EQ(m.zone("malloc-128").fail, fails);
  for (void* block : blocks) k.free(block, &m.type);
  k.cpus().join_all();
  EXPECT_EQ(domain, 1);
}

// REQ: NUMA-06
TEST(NumaEmpty, FiresOnceAndReturnsNull) {
  for (const bool invariants : {false, true}) {
    for (const int flags : {kM_WAITOK, kM_NOWAIT}) {
      KernelConfig config = numa_config(2);
      config.invariants = invariants;
      Machine m(config);
      m.trace(m.type);
      const domainset empty = make_domainset(0, DOMAINSET_POLICY_ROUNDROBIN);
      EXPECT_EQ(m.kernel.malloc_domainset(100, &m.type, &empty, MallocFlags::from_bits(flags)),
                nullptr);
      EXPECT_EQ(m.fired(), (Fired{{false, 0, -1}}));
      EXPECT_EQ(m.stats().numallocs + m.stats().memalloced + m.stats().size_mask, 0u);
      EXPECT_EQ(m.zone("malloc-128").fail, 0u);
    }
  }
}

// REQ: NUMA-08. Kernel C asks for sets by the kernel's names.
TEST(NumaCompat, KernelCodeNamesItsDomains) {
  Machine m(numa_config(2));
  m.kernel.cpus().bind(0);
  kern_static_type_register(driver_type());  // the module is loaded
  void* blocks[5];
  driver_domains(blocks);
  for (void* block : blocks) EXPECT_EQ(page_info(m.kernel.vm(), block).domain, 1);
  EXPECT_EQ(page_info(m.kernel.vm(), blocks[1]).arena, KmemArena::rwx);
  kern_static_type_unregister(driver_type());
}

// REQ: NUMA-07
TEST_F(Numa, AllDomainsFailingIsOneFiring) {
  for (int d = 0; d < 4; ++d) exhaust(d);
  m.trace(m.type);
  EXPECT_EQ(k.malloc_domainset(100, &m.type, DOMAINSET_RR(), M_NOWAIT), nullptr);
  EXPECT_EQ(m.fired(), (Fired{{false, 0, 3}}));
  EXPECT_EQ(m.stats().numallocs, 0u);
  EXPECT_EQ(m.stats().size_mask, 8u);
  EXPECT_EQ(m.zone("malloc-128").fail, 4u);
  const domainset two = make_domainset(0b0011, DOMAINSET_POLICY_ROUNDROBIN);
  EXPECT_EQ(k.malloc_domainset(100, &m.type, &two, M_NOWAIT), nullptr);
  EXPECT_EQ(m.zone("malloc-128").fail, 6u);
}

// REQ: NUMA-08
TEST_F(Numa, LargeBlocksFollowTheCallersSet) {
  m.trace(m.type);
  EXPECT_EQ(large(DOMAINSET_FIXED(2), 1), (Domains{2}));
  EXPECT_EQ(m.fired(), (Fired{{false, 73728, -1}}));
  exhaust(2);
  EXPECT_EQ(k.malloc_domainset(70000, &m.type, DOMAINSET_FIXED(2), M_NOWAIT), nullptr);
  EXPECT_EQ(m.fired(), Fired{});
  EXPECT_EQ(m.stats().numallocs, 1u);
  // malloc() itself takes turns.
  std::set<int> domains;
  for (int i = 0; i < 3; ++i) domains.insert(domain(k.malloc(70000, &m.type, M_NOWAIT)));
  EXPECT_EQ(domains, (std::set<int>{0, 1, 3}));
}

// Older releases asked round-robin whatever the caller's set was.
TEST(NumaRelease, OlderOnesIgnoreTheSetOfALargeBlock) {
  KernelConfig config = numa_config(2);
  config.release = 14;
  Machine m(config);
  std::set<int> domains;
  for (int i = 0; i < 2; ++i) {
    domains.insert(page_info(m.kernel.vm(), m.kernel.malloc_domainset(70000, &m.type,
                                                                      DOMAINSET_FIXED(1), M_WAITOK))
                       .domain);
  }
  EXPECT_EQ(domains, (std::set<int>{0, 1}));
}

// REQ: NUMA-09
TEST_F(Numa, ExecutableMemoryIsLarge) {
  m.trace(m.type);
  void* p = k.malloc_exec(100, &m.type, M_WAITOK);
  void* q = k.malloc_domainset_exec(100, &m.type, DOMAINSET_FIXED(3), M_WAITOK);
  EXPECT_EQ(m.fired(), (Fired{{false, 4096, -1}, {false, 4096, -1}}));
  EXPECT_EQ(page_info(vm, p).arena, KmemArena::rwx);
  EXPECT_EQ(page_info(vm, q).arena, KmemArena::rwx);
  EXPECT_EQ(domain(q), 3);
  // The flag alone does the same.
  void* r = k.malloc_domainset(100, &m.type, DOMAINSET_FIXED(1), M_WAITOK | M_EXEC);
  EXPECT_EQ(page_info(vm, r).arena, KmemArena::rwx);
  EXPECT_EQ(k.malloc_exec(0, &m.type, M_NOWAIT), nullptr);
}

TEST_F(Numa, ExecutableMemoryOfNoBytesThatWaitsIsRefused) {
  EXPECT_EQ(panic_of([&] { k.malloc_exec(0, &m.type, M_WAITOK); }),
            "not modelled: an allocation of 0 bytes that waits");
}

// REQ: NUMA-10
TEST_F(Numa, AlignedBlocksComeFromTheSet) {
  m.trace(m.type);
  void* p = k.malloc_domainset_aligned(300, 16, &m.type, DOMAINSET_FIXED(2), M_WAITOK);
  EXPECT_EQ(domain(p), 2);
  void* q = k.malloc_domainset_aligned(10, 4096, &m.type, DOMAINSET_FIXED(1), M_WAITOK);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(q) % 4096, 0u);
  EXPECT_EQ(m.fired(), (Fired{{false, 512, 6}, {false, 4096, 9}}));
}

// Quirk 15: 0 passes as a power of two, and the result is judged.
TEST(NumaAligned, ZeroTripsOverItsResult) {
  KernelConfig config = numa_config(2);
  config.invariants = true;
  Machine m(config);
  const std::string text = panic_of(
      [&] { m.kernel.malloc_domainset_aligned(16, 0, &m.type, DOMAINSET_FIXED(1), M_WAITOK); });
  EXPECT_EQ(text.rfind("malloc_domainset_aligned: result not aligned 0xfffff8", 0), 0u) << text;
  EXPECT_NE(text.find(" size 0x10 allocsize 0x10 align 0"), text.npos) << text;
}

// REQ: NUMA-11
TEST_F(Numa, ArraysHaveTheirOwnOverflow) {
  void* p = k.mallocarray_domainset(10, 30, &m.type, DOMAINSET_FIXED(3), M_WAITOK);
  EXPECT_EQ(domain(p), 3);
  EXPECT_EQ(k.malloc_usable_size(p), 384u);
  EXPECT_EQ(panic_of([&] {
              k.mallocarray_domainset(std::size_t{1} << 40, std::size_t{1} << 40, &m.type,
                                      DOMAINSET_RR(), M_NOWAIT);
            }),
            "mallocarray_domainset: 1099511627776 * 1099511627776 overflowed");
}

// REQ: NUMA-12
TEST_F(Numa, ContiguousMemoryComesFromWhereTheRangeIs) {
  const std::uint64_t third = 2 * 2048 * 4096;  // the first byte of domain 2
  void* p = k.contigmalloc(8192, &m.type, M_NOWAIT, third, third + 8191);
  EXPECT_EQ(domain(p), 2);
  EXPECT_EQ(page_info(vm, p).physical, third);
  // Nobody else has a page there; a set without domain 2 has none at all, and nobody waits.
  EXPECT_EQ(k.contigmalloc(4096, &m.type, M_NOWAIT, third, third + 8191), nullptr);
  const domainset others = make_domainset(0b1011, DOMAINSET_POLICY_ROUNDROBIN);
  EXPECT_EQ(k.contigmalloc_domainset(4096, &m.type, &others, M_WAITOK, third, third + 8191),
            nullptr);
  // A range that two domains share.
  const domainset last = make_domainset(0b1000, DOMAINSET_POLICY_ROUNDROBIN);
  void* q = k.contigmalloc_domainset(4096, &m.type, &last, M_NOWAIT, third);
  EXPECT_EQ(page_info(vm, q).physical, std::uint64_t{3} * 2048 * 4096);
}

TEST_F(Numa, ContiguousMemoryIsAlignedPhysically) {
  void* first = k.contigmalloc_domainset(4096, &m.type, DOMAINSET_FIXED(1), M_NOWAIT);
  ASSERT_NE(first, nullptr);
  void* p = k.contigmalloc_domainset(20000, &m.type, DOMAINSET_FIXED(1), M_NOWAIT, 0,
                                     ~std::uint64_t{0}, 65536, 32768);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(page_info(vm, p).physical.value() % 65536, 0u);
  void* q = k.contigmalloc_domainset(20000, &m.type, DOMAINSET_FIXED(1), M_NOWAIT, 0,
                                     ~std::uint64_t{0}, 4096, 32768);
  const std::uint64_t at = page_info(vm, q).physical.value();
  EXPECT_EQ(at / 32768, (at + 20479) / 32768);
}

TEST_F(Numa, AnEmptySetHasNoContiguousMemory) {
  m.trace(m.type);
  const domainset empty = make_domainset(0, DOMAINSET_POLICY_ROUNDROBIN);
  EXPECT_EQ(k.contigmalloc_domainset(4096, &m.type, &empty, M_WAITOK), nullptr);
  EXPECT_EQ(m.fired(), Fired{});
}

// REQ: NUMA-13. Quirk 12.
TEST_F(Numa, NodumpMarksTheWholeSlab) {
  void* p = k.malloc(70000, &m.type, M_WAITOK | M_NODUMP);
  EXPECT_FALSE(page_info(vm, p).dumped);
  EXPECT_FALSE(page_info(vm, static_cast<std::byte*>(p) + 69632).dumped);
  void* q = k.malloc(70000, &m.type, M_WAITOK);
  EXPECT_TRUE(page_info(vm, q).dumped);
  // The first request of a class makes its slabs, for everyone.
  void* a = k.malloc(16, &m.type, M_WAITOK | M_NODUMP);
  void* b = k.malloc(16, &m.type, M_WAITOK);
  EXPECT_FALSE(page_info(vm, a).dumped);
  EXPECT_FALSE(page_info(vm, b).dumped);
  // A slab that exists is not marked.
  void* c = k.malloc(32, &m.type, M_WAITOK);
  void* d = k.malloc(32, &m.type, M_WAITOK | M_NODUMP);
  EXPECT_TRUE(page_info(vm, c).dumped);
  EXPECT_TRUE(page_info(vm, d).dumped);
  // The mark goes with the pages.
  k.free(p, &m.type);
  k.free(q, &m.type);
  EXPECT_TRUE(page_info(vm, k.malloc(70000, &m.type, M_WAITOK)).dumped);
}

// REQ: NUMA-14. Quirk 13.
TEST(NumaReserve, IsAssertedWhenPagesAreNeeded) {
  KernelConfig config = numa_config(2);
  config.invariants = true;
  Machine m(config);
  m.kernel.malloc(16, &m.type, M_WAITOK);
  // A cached item: nobody looks at the flags.
  EXPECT_NE(m.kernel.malloc(16, &m.type, M_WAITOK | M_USE_RESERVE), nullptr);
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(2048, &m.type, M_WAITOK | M_USE_RESERVE); }),
            "M_USE_RESERVE requires M_NOWAIT");
}

// No item is kept back for it: it takes what anybody may take, and pages that others may not.
TEST_F(Numa, ReserveIsOfPagesAlone) {
  for (int d = 0; d < 4; ++d) exhaust(d);
  EXPECT_EQ(k.malloc(16, &m.type, M_NOWAIT), nullptr);
  EXPECT_NE(k.malloc(16, &m.type, M_NOWAIT | M_USE_RESERVE), nullptr);
  EXPECT_NE(k.malloc(16, &m.type, M_NOWAIT), nullptr);
}

// REQ: NUMA-15
TEST_F(Numa, ArenasAreKept) {
  void* p = kmem_malloc(vm, 8192, m::WAITOK | m::NEVERFREED);
  EXPECT_EQ(page_info(vm, p).arena, KmemArena::nofree);
  kmem_free(vm, p, 8192);
  uma_zone* zone = uma_zcreate(vm, "nofree", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR,
                               UMA_ZONE_NOFREE);
  EXPECT_EQ(page_info(vm, uma_zalloc(zone, kM_WAITOK)).arena, KmemArena::nofree);
  EXPECT_EQ(page_info(vm, k.malloc(64, &m.type, M_WAITOK)).arena, KmemArena::normal);
  EXPECT_EQ(page_info(vm, &m).domain, -1);
}

// REQ: NUMA-23
TEST(NumaDeadlock, NamesTheDomains) {
  Machine m(numa_config(2, 1));
  Kernel& k = m.kernel;
  EXPECT_EQ(panic_of([&] {
              while (k.malloc_domainset(70000, &m.type, DOMAINSET_FIXED(1), M_WAITOK) != nullptr) {
              }
            }),
            "deadlock: kernel (tid 100000): malloc_domainset 70000 M_T M_WAITOK waits for free "
            "pages of domain 1");
  Machine both(numa_config(2, 1));
  EXPECT_EQ(panic_of([&] {
              while (both.kernel.malloc(70000, &both.type, M_WAITOK) != nullptr) {
              }
            }),
            "deadlock: kernel (tid 100000): malloc 70000 M_T M_WAITOK waits for free pages of "
            "domains 0,1");
}

}  // namespace
}  // namespace dtmalloc
