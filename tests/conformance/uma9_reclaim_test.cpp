// SPDX-License-Identifier: BSD-2-Clause
// Reclaim: trim, drain, flushing CPUs, the timer, the keg (spec/malloc9.md 5.10).
#include <gtest/gtest.h>

#include <chrono>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

constexpr std::uint64_t kSecond = 1'000'000'000;

KernelConfig invariants() {
  KernelConfig config = small_config();
  config.invariants = true;
  return config;
}

uma_zone* malloc_zone(Machine& m, std::size_t zindx) { return m.kernel.impl().zones[zindx]; }
uma_zone_domain& domain_of(uma_zone* zone) { return zone->uz_domain[0]; }

// `buckets` full buckets of malloc-16 lie in the zone's list, two more with CPU 0.
std::vector<void*> fill_list(Machine& m, int buckets) {
  std::vector<void*> blocks;
  for (int i = 0; i < (buckets + 2) * 254; ++i)
    blocks.push_back(m.kernel.malloc(16, &m.type, M_WAITOK));
  for (void* block : blocks) m.kernel.free(block, &m.type);
  EXPECT_EQ(m.zone("malloc-16").bucket_cache_items, 254u * static_cast<unsigned>(buckets));
  return blocks;
}

// REQ: UMA9-23. Slabs stay when their items are free; DRAIN takes the list and the slabs that are
// then empty, not what a CPU holds.
TEST(Uma9Reclaim, DrainEmptiesTheListAndTheSlabs) {
  for (const bool inv : {false, true}) {
    Machine m(inv ? invariants() : small_config());
    fill_list(m, 5);
    const std::uint64_t before = m.zone("malloc-16").keg_pages;
    uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN);
    const ZoneStats zone = m.zone("malloc-16");
    EXPECT_EQ(zone.bucket_cache_items, 0u);
    EXPECT_EQ(zone.cpus.at(0).items, 508u);
    EXPECT_LT(zone.keg_pages, before);
    EXPECT_EQ(zone.keg_free_slabs, 0u);
    EXPECT_EQ(m.kernel.uma_kmem_total(),
              (m.kernel.total_pages() - m.kernel.free_pages()) * kPageSize);
    EXPECT_EQ(check_vm(m.kernel.vm()), "");
  }
}

// REQ: UMA9-24. DRAIN_CPU takes what the CPUs hold: nothing is left of a zone without live items.
TEST(Uma9Reclaim, DrainCpuLeavesNothing) {
  KernelConfig config = small_config(3);
  Machine m(config);
  for (int cpu = 0; cpu < 3; ++cpu) {
    m.kernel.cpus().bind(cpu);
    m.kernel.free(m.kernel.malloc(16, &m.type, M_WAITOK), &m.type);
    m.kernel.free(m.kernel.malloc(4096, &m.type, M_WAITOK), &m.type);
  }
  const ZoneStats before = m.zone("malloc-16");
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
  for (const char* name : {"malloc-16", "malloc-4096"}) {
    const ZoneStats zone = m.zone(name);
    EXPECT_EQ(zone.free, 0u) << name;
    EXPECT_EQ(zone.keg_pages, 0u) << name;
    EXPECT_EQ(zone.used, 0u) << name;
  }
  EXPECT_EQ(m.zone("malloc-16").requests, before.requests);
}

// REQ: UMA9-24. It halves the way of the bucket size to the minimum; each pass then takes one off.
TEST(Uma9Reclaim, BucketSizeShrinks) {
  Machine m;
  uma_zone* zone = malloc_zone(m, 9);  // minimum 2
  zone->uz_bucket_size = 100;
  uma_zone_reclaim(zone, UMA_RECLAIM_TRIM);
  EXPECT_EQ(zone->uz_bucket_size, 99);
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN);
  EXPECT_EQ(zone->uz_bucket_size, 98);
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN_CPU);
  EXPECT_EQ(zone->uz_bucket_size, 49);  // (2 + 98) / 2 - 1
  zone->uz_bucket_size = 100;
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);  // drain, flush, drain
  EXPECT_EQ(zone->uz_bucket_size, 49);                // (2 + 99) / 2 - 1
  zone->uz_bucket_size = 2;
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN_CPU);
  EXPECT_EQ(zone->uz_bucket_size, 2);
}

// REQ: UMA9-23. TRIM leaves the working set. Seven buckets were imported straight to the CPU, so
// imax = 7 * 254 = 1778 when five lie in the list.
TEST(Uma9Reclaim, TrimLeavesTheWorkingSet) {
  Machine m;
  fill_list(m, 5);
  uma_zone* zone = malloc_zone(m, 0);
  uma_zone_domain& domain = domain_of(zone);
  EXPECT_EQ(domain.uzd_imax, 1778);
  struct Pass {
    std::int64_t wss, left;
  };
  constexpr Pass kPasses[] = {
      {1778, 1270},              // imax = 1524
      {1333, 1270},              // 1270 < 1333 + 254
      {999, 1016},               // 1270 >= 999 + 254
      {749, 762},                // 1016 >= 749 + 254
      {561, 762},   {420, 508},  // 762 >= 420 + 254
      {315, 508},
  };
  for (const Pass& pass : kPasses) {
    uma_zone_reclaim(zone, UMA_RECLAIM_TRIM);
    EXPECT_EQ(domain.uzd_wss, pass.wss);
    EXPECT_EQ(domain.uzd_nitems, pass.left) << pass.wss;
  }
}

// REQ: UMA9-23. A round-robin zone's lists hold items of every domain, whichever is asked for.
TEST(Uma9Reclaim, RoundRobinZonesAreDrainedWhole) {
  KernelConfig config = small_config(2);
  config.domains = 2;
  Machine m(config);
  uma_zone* zone = uma_zcreate(m.kernel.vm(), "rr", 16, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, UMA_ZONE_ROUNDROBIN);
  std::vector<void*> items;
  for (int i = 0; i < 4000; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
  for (void* item : items) uma_zfree(zone, item);
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN_CPU);
  EXPECT_EQ(m.zone("rr").keg_pages, 0u);
}

// REQ: UMA9-25. Any other request is a panic.
TEST(Uma9Reclaim, UnknownRequestsPanic) {
  Machine m;
  EXPECT_EQ(panic_of([&] { uma_reclaim(m.kernel.vm(), 4); }), "unhandled reclamation request 4");
  Machine n;
  EXPECT_EQ(panic_of([&] { uma_zone_reclaim(malloc_zone(n, 0), 0); }),
            "unhandled reclamation request 0");
}

// REQ: UMA9-26. NOFREE slabs never go; a reserve keeps whole slabs for what partial ones lack.
TEST(Uma9Reclaim, KegsKeepWhatTheyMust) {
  Machine m;
  uma_zone* kept = uma_zcreate(m.kernel.vm(), "kept", 1000, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, UMA_ZONE_NOFREE | UMA_ZONE_NOBUCKET);
  uma_zfree(kept, uma_zalloc(kept, kM_WAITOK));
  uma_zone* reserved = uma_zcreate(m.kernel.vm(), "reserved", 1000, nullptr, nullptr, nullptr,
                                   nullptr, UMA_ALIGN_PTR, UMA_ZONE_NOBUCKET);
  std::vector<void*> items;
  for (int i = 0; i < 20; ++i) items.push_back(uma_zalloc(reserved, kM_WAITOK));
  for (std::size_t i = 1; i < 20; ++i) uma_zfree(reserved, items[i]);  // 4 a slab, one is live
  reserved->uz_keg->uk_reserve = 9;
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN);
  EXPECT_EQ(m.zone("kept").keg_pages, 1u);
  EXPECT_EQ(m.zone("reserved").keg_pages, 3u);  // 3 free in the partial one, 6 more are 2 slabs
  reserved->uz_keg->uk_reserve = 3;
  uma_zone_reclaim(reserved, UMA_RECLAIM_DRAIN);
  EXPECT_EQ(m.zone("reserved").keg_pages, 1u);
}

// REQ: UMA9-26. INVARIANTS: a slab that goes is looked at; there is no zone to name.
TEST(Uma9Reclaim, FiniFindsCorruption) {
  Machine m(invariants());
  auto* p = static_cast<std::uint64_t*>(m.kernel.malloc(16, &m.type, M_WAITOK));
  m.kernel.free(p, &m.type);
  p[0] = 0x41;
  const std::string text = panic_of([&] { uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU); });
  EXPECT_NE(text.find(" (16, , T) + 0 = 41\n"), std::string::npos) << text;
  EXPECT_EQ(text.rfind("Memory modified after free 0x", 0), 0u);
}

// REQ: UMA9-27. Zones that are not managed are left alone, but when named.
TEST(Uma9Reclaim, UnmanagedZonesAreLeftAlone) {
  Machine m;
  uma_zone* zone = uma_zcreate(m.kernel.vm(), "own", 1000, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, UMA_ZONE_UNMANAGED | UMA_ZONE_NOBUCKET);
  uma_zfree(zone, uma_zalloc(zone, kM_WAITOK));
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
  EXPECT_EQ(m.zone("own").keg_pages, 1u);
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN);
  EXPECT_EQ(m.zone("own").keg_pages, 0u);
}

// REQ: UMA9-28. Release 16: TRIM passes NOTRIM zones over; DRAIN does not. 14 has no such flag.
TEST(Uma9Reclaim, NotrimZonesAreNotTrimmed) {
  for (const int release : {14, 16}) {
    KernelConfig config = small_config();
    config.release = release;
    Machine m(config);
    uma_zone* zone = uma_zcreate(m.kernel.vm(), "nt", 1000, nullptr, nullptr, nullptr, nullptr,
                                 UMA_ALIGN_PTR, UMA_ZONE_NOTRIM | UMA_ZONE_NOBUCKET);
    uma_zfree(zone, uma_zalloc(zone, kM_WAITOK));
    uma_reclaim(m.kernel.vm(), UMA_RECLAIM_TRIM);
    EXPECT_EQ(m.zone("nt").keg_pages, release == 16 ? 1u : 0u);
    uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN);
    EXPECT_EQ(m.zone("nt").keg_pages, 0u);
  }
}

// REQ: UMA9-29. Every 20 s the timer looks; it takes a quarter of what has idled, and only after
// more than 45 looks without running dry.
TEST(Uma9Reclaim, TimerTrimsWhatIdles) {
  Machine m;
  Clock& clock = m.kernel.cpus().clock();
  fill_list(m, 40);
  uma_zone_domain& domain = domain_of(malloc_zone(m, 0));
  clock.advance(20 * kSecond);
  EXPECT_EQ(domain.uzd_wss, 42 * 254);  // all that was ever imported: nothing idles
  EXPECT_EQ(domain.uzd_timin, 0u);
  clock.advance(45 * 20 * kSecond);
  EXPECT_EQ(domain.uzd_wss, 0);
  EXPECT_EQ(domain.uzd_timin, 45u);
  EXPECT_EQ(domain.uzd_nitems, 40 * 254);
  domain.uzd_limin = 4 * 6 * 254;  // six buckets
  clock.advance(20 * kSecond);
  // limin = (10160 + 255 * 6096) / 256 = 6111, target = 10160 - 1527
  EXPECT_EQ(domain.uzd_timin, 46u);
  EXPECT_EQ(domain.uzd_nitems, 34 * 254);
}

// REQ: UMA9-29. At rest the timer costs nothing, and its counts go on all the same.
TEST(Uma9Reclaim, TimerRests) {
  Machine m;
  Clock& clock = m.kernel.cpus().clock();
  EXPECT_EQ(clock.next_due(), ~std::uint64_t{0});
  fill_list(m, 3);
  clock.advance(100 * kSecond);
  EXPECT_EQ(clock.next_due(), 120 * kSecond);
  EXPECT_EQ(clock.next_one_shot(), ~std::uint64_t{0});
  const auto start = std::chrono::steady_clock::now();
  clock.advance(std::uint64_t{100} * 365 * 24 * 3600 * kSecond);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(clock.next_due(), ~std::uint64_t{0});
  zone_list(m.kernel.vm());
  const std::uint64_t looks = clock.now() / (20 * kSecond);
  EXPECT_EQ(domain_of(malloc_zone(m, 3)).uzd_timin, looks);
  // A bucket wakes it, at the next multiple of 20 s.
  clock.advance(7 * kSecond);
  m.kernel.malloc(4096, &m.type, M_WAITOK);
  EXPECT_EQ(clock.next_due(), (looks + 1) * 20 * kSecond);
}

// REQ: UMA9-14. bucketdisable is looked at anew by the timer and by each reclaim.
TEST(Uma9Reclaim, BucketdisableFollowsFreePages) {
  Machine m(small_config(1, 8 << 20));
  Vm& vm = m.kernel.vm();
  std::vector<void*> blocks;
  while (vm.domains[0].free_count.load() >= vm.domains[0].thresholds.free_min)
    blocks.push_back(m.kernel.contigmalloc(4096, &m.type, M_NOWAIT));
  EXPECT_FALSE(vm.bucketdisable.load());
  uma_reclaim(vm, UMA_RECLAIM_TRIM);
  EXPECT_TRUE(vm.bucketdisable.load());
  for (void* block : blocks) m.kernel.free(block, &m.type);
  EXPECT_TRUE(vm.bucketdisable.load());
  uma_reclaim(vm, UMA_RECLAIM_TRIM);
  EXPECT_FALSE(vm.bucketdisable.load());
}

// REQ: UMA9-30. A destroyed zone waits for nobody here, and gives everything back.
TEST(Uma9Reclaim, DestroyedZonesGiveAllBack) {
  Machine m(small_config(2));
  const std::uint64_t before = m.kernel.free_pages();
  uma_zone* zone = uma_zcreate(m.kernel.vm(), "gone", 2048, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, 0);
  for (const int cpu : {0, 1}) {
    m.kernel.cpus().bind(cpu);
    std::vector<void*> items;
    for (int i = 0; i < 50; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
    for (void* item : items) uma_zfree(zone, item);
  }
  uma_zdestroy(zone);
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
  EXPECT_GE(m.kernel.free_pages() + 4, before);
}

}  // namespace
}  // namespace dtmalloc
