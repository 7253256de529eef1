// SPDX-License-Identifier: BSD-2-Clause
// UMA with several NUMA domains: kegs, cross buckets, round-robin zones.
// Expectations: spec/malloc9.md 5.6, 5.7, 5.8, 5.10, 5.12.
#include <gtest/gtest.h>

#include <vector>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;

constexpr std::uint64_t kDomainPages = 2048;

KernelConfig numa_config(int domains, int cpus) {
  KernelConfig config =
      test::small_config(cpus, kDomainPages * 4096 * static_cast<unsigned>(domains));
  config.domains = domains;
  return config;
}

struct NumaUma {
  explicit NumaUma(int domains, int cpus) : m(numa_config(domains, cpus)) {
    m.kernel.cpus().bind(0);
  }
  Machine m;
  Kernel& k = m.kernel;
  Vm& vm = k.vm();

  uma_zone* make(const char* name, std::size_t size, std::uint32_t flags = 0) {
    return uma_zcreate(vm, name, size, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, flags);
  }
  int domain(const void* addr) const { return page_info(vm, addr).domain; }
  void exhaust(int d, std::uint64_t left = 2) {
    malloc_type& hog = k.define_type("M_HOG" + std::to_string(d), "hog");
    while (vm.domains[static_cast<std::size_t>(d)].free_count.load() > left)
      ASSERT_NE(k.contigmalloc_domainset(4096, &hog, DOMAINSET_FIXED(d), M_NOWAIT), nullptr);
  }
  // Items of a domain that nobody caches on a CPU.
  std::vector<void*> take(uma_zone* zone, int d, int count) {
    std::vector<void*> out;
    for (int i = 0; i < count; ++i) out.push_back(uma_zalloc_domain(zone, nullptr, d, kM_NOWAIT));
    return out;
  }
};

// REQ: NUMA-16
TEST(NumaKeg, FirstTouchStaysInTheDomain) {
  NumaUma u(2, 2);
  void* here = u.k.malloc(100, &u.m.type, M_WAITOK);
  u.k.cpus().bind(1);
  void* there = u.k.malloc(100, &u.m.type, M_WAITOK);
  EXPECT_EQ(u.domain(here), 0);
  EXPECT_EQ(u.domain(there), 1);
  // Free items and pages of domain 0 do not help a CPU of domain 1.
  u.exhaust(1);
  EXPECT_EQ(u.k.malloc(2048, &u.m.type, M_NOWAIT), nullptr);
  EXPECT_GT(u.vm.domains[0].free_count.load(), kDomainPages / 2);
}

TEST(NumaKeg, ReserveAsksAllDomains) {
  NumaUma u(2, 1);
  uma_zone* zone = u.make("items", 2048, UMA_ZONE_NOBUCKET);
  u.exhaust(0, 0 + 2);
  // Its own domain's last pages, then the other domain.
  int own = 0, other = 0;
  for (int i = 0; i < 20; ++i) {
    void* item = uma_zalloc(zone, kM_NOWAIT | kM_USE_RESERVE);
    ASSERT_NE(item, nullptr);
    (u.domain(item) == 0 ? own : other) += 1;
  }
  EXPECT_GT(other, 0);
  EXPECT_EQ(u.vm.domains[0].free_count.load(), 0u);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
}

// REQ: NUMA-17
TEST(NumaKeg, WithoutADomainItTakesTurns) {
  NumaUma u(4, 1);
  // One item a slab, and no bucket, so that each item shows where the keg looked.
  uma_zone* zone = u.make("pages", 4096, UMA_ZONE_ROUNDROBIN | UMA_ZONE_NOBUCKET);
  std::vector<int> domains;
  std::vector<void*> items;
  for (int i = 0; i < 6; ++i) {
    items.push_back(uma_zalloc(zone, kM_WAITOK));
    domains.push_back(u.domain(items.back()));
  }
  EXPECT_EQ(domains, (std::vector<int>{0, 1, 2, 3, 0, 1}));
  // A free item of another domain waits until it is that domain's turn.
  const std::uint64_t pages = u.m.zone("pages").keg_pages;
  uma_zfree(zone, items[3]);
  EXPECT_EQ(u.domain(uma_zalloc(zone, kM_WAITOK)), 2);
  EXPECT_EQ(u.m.zone("pages").keg_pages, pages + 1);
  EXPECT_EQ(uma_zalloc(zone, kM_WAITOK), items[3]);
  EXPECT_EQ(u.m.zone("pages").keg_pages, pages + 1);
}

TEST(NumaKeg, WithoutADomainItPassesFullOnes) {
  NumaUma u(2, 1);
  uma_zone* zone = u.make("pages", 4096, UMA_ZONE_ROUNDROBIN | UMA_ZONE_NOBUCKET);
  u.exhaust(0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(u.domain(uma_zalloc(zone, kM_NOWAIT)), 1);
  u.exhaust(1);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
}

// REQ: NUMA-18
TEST(NumaCross, ForeignItemsGoHome) {
  NumaUma u(2, 2);
  Kernel& k = u.k;
  constexpr int kItems = 254 + 100;  // more than a cross bucket holds
  std::vector<void*> items;
  for (int i = 0; i < kItems; ++i) items.push_back(k.malloc(16, &u.m.type, M_WAITOK));
  k.cpus().bind(1);
  for (int i = 0; i < 254; ++i) k.free(items[static_cast<std::size_t>(i)], &u.m.type);
  ZoneStats zone = u.m.zone("malloc-16");
  EXPECT_EQ(zone.xdomain, 0u);          // it is full and not flushed yet
  EXPECT_EQ(zone.cpus[1].items, 254u);  // counted as the CPU's
  EXPECT_EQ(zone.bucket_cache_items, 0u);
  EXPECT_EQ(zone.used, 100u);
  uma_cache* cache = nullptr;
  for (uma_zone* known : zone_list(u.vm))
    if (std::string_view(known->uz_name) == "malloc-16") cache = known->cache_or_null(1);
  ASSERT_NE(cache, nullptr);
  ASSERT_NE(cache->uc_crossbucket, nullptr);
  EXPECT_EQ(cache->uc_crossbucket->ub_cnt, 254);
  EXPECT_EQ(cache->top, cache->base);
  // One more flushes it into domain 0's list.
  k.free(items[254], &u.m.type);
  zone = u.m.zone("malloc-16");
  EXPECT_EQ(zone.xdomain, 254u);
  EXPECT_EQ(zone.bucket_cache_items, 254u);
  EXPECT_EQ(cache->uc_crossbucket->ub_cnt, 1);
  // A CPU of domain 1 does not get them; one of domain 0 does, without a slab.
  EXPECT_EQ(u.domain(k.malloc(16, &u.m.type, M_WAITOK)), 1);
  k.cpus().bind(0);
  const std::uint64_t pages = u.m.zone("malloc-16").keg_pages;
  for (int i = 0; i < 300; ++i) EXPECT_EQ(u.domain(k.malloc(16, &u.m.type, M_WAITOK)), 0);
  EXPECT_EQ(u.m.zone("malloc-16").bucket_cache_items, 0u);
  EXPECT_EQ(u.m.zone("malloc-16").keg_pages, pages);
}

// One domain: nothing is foreign.
TEST(NumaCross, OneDomainHasNone) {
  NumaUma u(1, 2);
  std::vector<void*> items;
  for (int i = 0; i < 600; ++i) items.push_back(u.k.malloc(16, &u.m.type, M_WAITOK));
  u.k.cpus().bind(1);
  for (void* item : items) u.k.free(item, &u.m.type);
  EXPECT_EQ(u.m.zone("malloc-16").xdomain, 0u);
}

// What is freed on the hot path of its own domain does not meet the cross bucket.
TEST(NumaCross, HomeItemsStay) {
  NumaUma u(2, 4);  // CPUs 0 and 1 are of domain 0
  void* p = u.k.malloc(16, &u.m.type, M_WAITOK);
  u.k.cpus().bind(1);
  u.k.free(p, &u.m.type);
  EXPECT_EQ(u.k.malloc(16, &u.m.type, M_WAITOK), p);
  u.k.cpus().bind(2);
  u.k.free(p, &u.m.type);
  EXPECT_NE(u.k.malloc(16, &u.m.type, M_WAITOK), p);
}

// REQ: NUMA-19
TEST(NumaCross, ThreeDomainsAreSorted) {
  NumaUma u(3, 3);
  uma_zone* zone = u.make("items", 128);  // buckets of 126
  std::vector<void*> of[3];
  for (int d = 0; d < 3; ++d) of[d] = u.take(zone, d, 200);
  u.k.cpus().bind(2);
  // 63 of each of the two other domains fill the cross bucket.
  for (std::size_t i = 0; i < 63; ++i) {
    uma_zfree(zone, of[0][i]);
    uma_zfree(zone, of[1][i]);
  }
  EXPECT_EQ(zone->uz_xdomain->load(), 0u);
  uma_zfree(zone, of[0][63]);
  EXPECT_EQ(zone->uz_xdomain->load(), 126u);
  for (std::size_t d = 0; d < 2; ++d) {
    ASSERT_NE(zone->uz_domain[d].uzd_cross, nullptr);
    EXPECT_EQ(zone->uz_domain[d].uzd_cross->ub_cnt, 63);
  }
  EXPECT_EQ(zone->uz_domain[2].uzd_cross, nullptr);
  EXPECT_EQ(u.m.zone("items").bucket_cache_items, 0u);  // those being sorted are not in it
  // Another round fills both, and they join the lists of their domains.
  for (std::size_t i = 64; i < 127; ++i) {
    uma_zfree(zone, of[0][i]);
    uma_zfree(zone, of[1][i]);
  }
  EXPECT_EQ(zone->uz_xdomain->load(), 252u);
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 126);
  EXPECT_EQ(check_vm(u.vm), "");
}

TEST(NumaCross, AReclaimFreesWhatIsBeingSorted) {
  NumaUma u(3, 3);
  uma_zone* zone = u.make("items", 128);
  std::vector<void*> items = u.take(zone, 0, 127);
  u.k.cpus().bind(2);
  for (void* item : items) uma_zfree(zone, item);
  // All 126 were of one domain: its bucket is full and listed. 30 more begin the next.
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 126);
  EXPECT_EQ(zone->uz_domain[0].uzd_cross, nullptr);
  std::vector<void*> more = u.take(zone, 1, 126);
  for (void* item : more) uma_zfree(zone, item);
  ASSERT_NE(zone->uz_domain[1].uzd_cross, nullptr);
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN);
  EXPECT_EQ(zone->uz_domain[1].uzd_cross, nullptr);
  EXPECT_EQ(check_vm(u.vm), "");
}

// REQ: NUMA-20
TEST(NumaZallocDomain, TakesFromTheListOrTheKeg) {
  NumaUma u(2, 2);
  uma_zone* zone = u.make("items", 2048);  // buckets of 8, two items a slab
  // The CPU's own items are not looked at.
  uma_zfree(zone, uma_zalloc(zone, kM_WAITOK));
  const ZoneStats before = u.m.zone("items");
  void* item = uma_zalloc_domain(zone, nullptr, 0, kM_WAITOK);
  EXPECT_EQ(u.domain(item), 0);
  EXPECT_EQ(u.m.zone("items").cpus[0].items, before.cpus[0].items);
  EXPECT_EQ(u.m.zone("items").requests, before.requests + 1);
  EXPECT_EQ(u.domain(uma_zalloc_domain(zone, nullptr, 1, kM_WAITOK)), 1);
  // Nor those that wait to go home.
  void* foreign = uma_zalloc_domain(zone, nullptr, 1, kM_WAITOK);
  uma_zfree(zone, foreign);
  EXPECT_NE(uma_zalloc_domain(zone, nullptr, 1, kM_WAITOK), foreign);
}

TEST(NumaZallocDomain, PutsTheBucketBack) {
  NumaUma u(2, 1);
  uma_zone* zone = u.make("items", 16384);  // one item a bucket, room for two
  std::vector<void*> items = u.take(zone, 0, 6);
  for (void* item : items) uma_zfree(zone, item);
  // The CPU keeps two buckets of two; one is listed.
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 2);
  void* last = uma_zalloc_domain(zone, nullptr, 0, kM_WAITOK);
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 1);
  EXPECT_NE(uma_zalloc_domain(zone, nullptr, 0, kM_WAITOK), last);
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 0);
  EXPECT_EQ(zone->uz_domain[0].uzd_buckets, nullptr);
}

TEST(NumaZallocDomain, CountsOneFailureATry) {
  NumaUma u(2, 1);
  uma_zone* zone = u.make("items", 2048);
  u.exhaust(1);
  EXPECT_EQ(uma_zalloc_domain(zone, nullptr, 1, kM_NOWAIT), nullptr);
  EXPECT_EQ(zone->uz_fails->load(), 1u);
}

// With one domain it is uma_zalloc().
TEST(NumaZallocDomain, OneDomainUsesTheCache) {
  NumaUma u(1, 1);
  uma_zone* zone = u.make("items", 2048);
  void* item = uma_zalloc(zone, kM_WAITOK);
  uma_zfree(zone, item);
  EXPECT_EQ(uma_zalloc_domain(zone, nullptr, 0, kM_WAITOK), item);
}

// REQ: NUMA-21
TEST(NumaRoundRobin, BalancesTheLists) {
  NumaUma u(2, 2);
  uma_zone* zone = u.make("items", 2048, UMA_ZONE_ROUNDROBIN);  // buckets of 8
  EXPECT_EQ(zone->uz_flags & UMA_ZONE_FIRSTTOUCH, 0u);
  std::vector<void*> items;
  for (int i = 0; i < 80; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
  int in_one = 0;
  for (void* item : items) in_one += u.domain(item);
  EXPECT_EQ(in_one, 40);  // each bucket is filled from both domains
  u.k.cpus().bind(1);
  u.k.cpus().clock().advance(1000);  // no lock is contended: buckets keep their size
  for (void* item : items) uma_zfree(zone, item);
  EXPECT_EQ(zone->uz_xdomain->load(), 0u);
  // 16 on the CPU, eight buckets of 8 in the lists, evenly.
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 32);
  EXPECT_EQ(zone->uz_domain[1].uzd_nitems, 32);
  // A refill takes from the longer list: of equals, that of the CPU's domain.
  for (int i = 0; i < 17; ++i) uma_zalloc(zone, kM_WAITOK);
  EXPECT_EQ(zone->uz_domain[1].uzd_nitems, 24);
  for (int i = 0; i < 8; ++i) uma_zalloc(zone, kM_WAITOK);
  EXPECT_EQ(zone->uz_domain[0].uzd_nitems, 24);
}

// REQ: NUMA-22
TEST(NumaKeg, HeadersAreOfTheDomain) {
  NumaUma u(2, 2);
  u.k.cpus().bind(1);
  u.k.malloc(2048, &u.m.type, M_WAITOK);
  const uma_keg& headers = *u.vm.slab_zones[0]->uz_keg;
  EXPECT_EQ(headers.uk_domain[0].ud_pages, 0u);
  EXPECT_GT(headers.uk_domain[1].ud_pages, 0u);
}

// A header is asked for once, and then the pages are waited for: no failure of "UMA Slabs".
TEST(NumaKeg, WaitsWithItsHeader) {
  NumaUma u(1, 2);
  Kernel& k = u.k;
  std::vector<void*> blocks;
  uma_zone* zone = u.make("pages", 4096, UMA_ZONE_NOBUCKET);  // nothing that a reclaim could take
  uma_zalloc(zone, kM_WAITOK);                                // a page of headers
  while (void* block = k.contigmalloc(4096, &u.m.type, M_NOWAIT)) blocks.push_back(block);
  void* got = nullptr;
  k.cpus().spawn({}, 1, [&] { got = uma_zalloc(zone, kM_WAITOK); });
  for (int i = 0; i < 100; ++i) k.cpus().operation_done();
  EXPECT_EQ(u.vm.page_waiters.load(), 1);
  const std::uint64_t used = u.m.zone("UMA Slabs 0").used;
  for (void* block : blocks) k.free(block, &u.m.type);
  k.cpus().join_all();
  EXPECT_NE(got, nullptr);
  EXPECT_EQ(u.m.zone("UMA Slabs 0").used, used);  // it was held all the time
  EXPECT_EQ(u.m.zone("UMA Slabs 0").fail, 0u);
}

// REQ: NUMA-25
TEST(NumaReclaim, OneDomainAlone) {
  NumaUma u(2, 2);
  uma_zone* zone = u.make("items", 2048);
  for (int d = 0; d < 2; ++d)
    for (void* item : u.take(zone, d, 2)) zone_free_item(*zone, item, nullptr, SKIP_DTOR);
  EXPECT_EQ(zone->uz_keg->uk_domain[0].ud_pages, 1u);
  EXPECT_EQ(zone->uz_keg->uk_domain[1].ud_pages, 1u);
  uma_reclaim_domain(u.vm, UMA_RECLAIM_DRAIN, 1);
  EXPECT_EQ(zone->uz_keg->uk_domain[0].ud_pages, 1u);
  EXPECT_EQ(zone->uz_keg->uk_domain[1].ud_pages, 0u);
}

// A flushed CPU gives each bucket to the domain of its items.
TEST(NumaReclaim, DrainCpuSortsCrossBuckets) {
  for (const int domains : {2, 3}) {
    NumaUma u(domains, domains);
    std::vector<void*> items;
    for (int i = 0; i < 100; ++i) items.push_back(u.k.malloc(64, &u.m.type, M_WAITOK));
    u.k.cpus().bind(1);
    for (void* item : items) u.k.free(item, &u.m.type);
    u.k.malloc(64, &u.m.type, M_WAITOK);
    uma_reclaim(u.vm, UMA_RECLAIM_DRAIN_CPU);
    EXPECT_EQ(check_vm(u.vm), "");
    EXPECT_EQ(u.m.zone("malloc-64").used, 1u);
    EXPECT_EQ(u.m.zone("malloc-64").keg_pages, 1u);
  }
}

// A destroyed zone gives back what all domains have.
TEST(NumaZone, DestroyEmptiesAllDomains) {
  NumaUma u(3, 3);
  const std::uint64_t free_pages = u.k.free_pages();
  uma_zone* zone = u.make("items", 128, UMA_ZONE_NOBUCKET);
  for (int d = 0; d < 3; ++d)
    for (void* item : u.take(zone, d, 50)) uma_zfree(zone, item);
  EXPECT_LT(u.k.free_pages(), free_pages);
  uma_zdestroy(zone);
  EXPECT_EQ(u.k.free_pages(), free_pages);
  EXPECT_EQ(u.m.console, "");
}

}  // namespace
}  // namespace dtmalloc
