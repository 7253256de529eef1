// SPDX-License-Identifier: BSD-2-Clause
// uma(9)'s zones of every kind: limits, cache-only, secondary and per-CPU zones, reserves
// (spec/malloc9.md 5.1, 5.2, 5.7, 5.8, 5.12).
#include <gtest/gtest.h>

#include <algorithm>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

extern "C" int driver_fills_its_zone(int limit);

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

constexpr std::uint64_t kSecond = 1'000'000'000;

uma_zone* zone_of(Machine& m, const char* name, std::size_t size, std::uint32_t flags = 0) {
  return uma_zcreate(m.kernel.vm(), name, size, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR,
                     flags);
}

// REQ: UMA9-50. Two buckets a CPU share half of the limit; the rest is the list's.
TEST(Uma9Zones, SetMaxBoundsTheCaches) {
  struct Row {
    int cpus, limit, size, rest;
  };
  constexpr Row kRows[] = {
      {1, 100, 25, 50},        // 100 / 2 / 2
      {4, 100, 6, 52},         // 100 / 8 / 2, 100 - 48
      {4, 12800, 254, 10768},  // capped
      {4, 15, 1, 7},           // one, as there is one for each
      {4, 7, 0, 7},            // nothing is cached
  };
  for (const Row& row : kRows) {
    Machine m(small_config(row.cpus));
    uma_zone* zone = zone_of(m, "z", 64);
    EXPECT_EQ(uma_zone_get_max(zone), 0);
    EXPECT_EQ(uma_zone_set_max(zone, row.limit), row.limit);
    EXPECT_EQ(uma_zone_get_max(zone), row.limit);
    EXPECT_EQ(zone->uz_bucket_size, row.size);
    EXPECT_EQ(zone->uz_bucket_size_max, row.size);
    EXPECT_EQ(zone->uz_bucket_max, static_cast<std::uint64_t>(row.rest));
    EXPECT_NE(zone->uz_flags & UMA_ZFLAG_LIMIT, 0u);
    EXPECT_EQ(m.zone("z").limit, static_cast<std::uint64_t>(row.limit));
    uma_zone* other = zone_of(m, "other", 64);
    uma_zone_set_maxcache(other, row.limit);
    EXPECT_EQ(other->uz_bucket_size, row.size);
    EXPECT_EQ(uma_zone_get_max(other), 0);
  }
}

// REQ: UMA9-51. A full zone refuses M_NOWAIT: one failure, one warning in 300 s.
TEST(Uma9Zones, FullZoneRefusesNowait) {
  Machine m(small_config(4));
  uma_zone* zone = zone_of(m, "tight", 64);
  uma_zone_set_max(zone, 10);
  uma_zone_set_warning(zone, "limit reached, see tuning(7)");
  std::vector<void*> items;
  for (int i = 0; i < 10; ++i) items.push_back(uma_zalloc(zone, kM_NOWAIT));
  EXPECT_EQ(uma_zone_get_cur(zone), 10);
  EXPECT_EQ(m.zone("tight").fail, 0u);
  EXPECT_EQ(m.console, "");
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.zone("tight").fail, 1u);
  EXPECT_EQ(m.zone("tight").sleep, 0u);
  const std::string line = "[zone: tight] limit reached, see tuning(7)\n";
  EXPECT_EQ(m.console, line);
  m.kernel.cpus().clock().advance(300 * kSecond - 1);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.console, line);
  m.kernel.cpus().clock().advance(1);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.console, line + line);
  EXPECT_EQ(m.kernel.sysctl().find("vm.zone_warnings")->write("0"), 0);
  m.kernel.cpus().clock().advance(300 * kSecond);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.console, line + line);
  uma_zfree(zone, items.back());
  EXPECT_NE(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.zone("tight").fail, 4u);
}

// REQ: UMA9-51. Items in caches count; a cached zone refuses when its own CPU has none left.
TEST(Uma9Zones, CachedItemsCountAgainstTheLimit) {
  Machine m;
  uma_zone* zone = zone_of(m, "cached", 64);
  uma_zone_set_max(zone, 100);
  std::vector<void*> items;
  while (void* item = uma_zalloc(zone, kM_NOWAIT)) items.push_back(item);
  EXPECT_EQ(items.size(), 100u);
  EXPECT_EQ(m.zone("cached").fail, 1u);
  for (void* item : items) uma_zfree(zone, item);
  EXPECT_EQ(zone->item_count(),
            m.zone("cached").bucket_cache_items + m.zone("cached").cpus.at(0).items);
  uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN_CPU);
  EXPECT_EQ(zone->item_count(), 0u);
}

// REQ: UMA9-52. M_WAITOK sleeps on "zonelimit", first come first served; each sleep is counted, and
// what is freed goes past the caches.
TEST(Uma9Zones, SleepersAreServedInOrder) {
  Machine m(small_config(4));
  CpuSet& cpus = m.kernel.cpus();
  uma_zone* zone = zone_of(m, "fifo", 64);
  uma_zone_set_max(zone, 2);
  void* a = uma_zalloc(zone, kM_WAITOK);
  void* b = uma_zalloc(zone, kM_WAITOK);
  std::string order;
  for (int id = 1; id <= 3; ++id)
    cpus.spawn({}, id, [&, id] {
      cpus.sleep_until(static_cast<std::uint64_t>(id) * kSecond);
      void* item = uma_zalloc(zone, kM_WAITOK);
      order += std::to_string(id);
      cpus.sleep_until(cpus.clock().now() + 10 * kSecond);
      uma_zfree(zone, item);
    });
  cpus.spawn({}, 0, [&] {
    cpus.sleep_until(5 * kSecond);
    EXPECT_TRUE(uma_zone_exhausted(zone));
    EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
    uma_zfree(zone, a);
    cpus.sleep_until(6 * kSecond);
    EXPECT_EQ(order, "1");
    uma_zfree(zone, b);
  });
  cpus.join_all();
  EXPECT_EQ(order, "123");
  EXPECT_EQ(m.zone("fifo").sleep, 3u);
  EXPECT_EQ(m.zone("fifo").fail, 1u);
  EXPECT_FALSE(uma_zone_exhausted(zone));
  EXPECT_EQ(uma_zone_get_cur(zone), 0);
}

// REQ: UMA9-52. A raised limit wakes them.
TEST(Uma9Zones, RaisedLimitWakesSleepers) {
  Machine m(small_config(2));
  uma_zone* zone = zone_of(m, "raised", 64);
  uma_zone_set_max(zone, 1);
  uma_zalloc(zone, kM_WAITOK);
  void* got = nullptr;
  m.kernel.cpus().spawn({}, 1, [&] { got = uma_zalloc(zone, kM_WAITOK); });
  m.kernel.cpus().spawn({}, 0, [&] {
    m.kernel.cpus().sleep_until(kSecond);
    uma_zone_set_max(zone, 2);
  });
  m.kernel.cpus().join_all();
  EXPECT_NE(got, nullptr);
}

// REQ: UMA9-52. Nobody can free: a deadlock that names zone and channel.
TEST(Uma9Zones, WaitingForALimitCanBeADeadlock) {
  Machine m;
  uma_zone* zone = zone_of(m, "stuck", 64);
  uma_zone_set_max(zone, 1);
  uma_zalloc(zone, kM_WAITOK);
  const std::string text = panic_of([&] { uma_zalloc(zone, kM_WAITOK); });
  EXPECT_NE(text.find("uma_zalloc stuck M_WAITOK waits for zonelimit"), std::string::npos) << text;
}

// REQ: UMA9-53. The action runs soon after, once for all refusals until then.
TEST(Uma9Zones, MaxactionRuns) {
  Machine m;
  uma_zone* zone = zone_of(m, "act", 64);
  uma_zone_set_max(zone, 1);
  int runs = 0;
  uma_zone_set_maxaction(zone, [&](uma_zone* which) {
    EXPECT_EQ(which, zone);
    ++runs;
  });
  uma_zalloc(zone, kM_NOWAIT);
  uma_zalloc(zone, kM_NOWAIT);
  uma_zalloc(zone, kM_NOWAIT);
  EXPECT_EQ(runs, 0);
  m.kernel.cpus().clock().advance(1);
  EXPECT_EQ(runs, 1);
  uma_zalloc(zone, kM_NOWAIT);
  m.kernel.cpus().clock().advance(1);
  EXPECT_EQ(runs, 2);
}

// REQ: UMA9-53. An action may destroy its zone.
TEST(Uma9Zones, MaxactionMayDestroyTheZone) {
  Machine m;
  uma_zone* zone = zone_of(m, "act", 64);
  uma_zone_set_max(zone, 1);
  void* item = uma_zalloc(zone, kM_NOWAIT);
  uma_zone_set_maxaction(zone, [&](uma_zone* which) {
    uma_zfree(which, item);
    uma_zdestroy(which);
  });
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  m.kernel.cpus().clock().advance(1);
  for (const ZoneStats& row : m.kernel.zones()) EXPECT_NE(row.name, "act");
}

// REQ: UMA9-53. It is destroyed when its action is through, not under its feet.
TEST(Uma9Zones, ZoneOfAnActionLivesUntilTheActionIsThrough) {
  Machine m;
  uma_zone* zone = zone_of(m, "act", 64);
  uma_zone_set_max(zone, 1);
  void* item = uma_zalloc(zone, kM_NOWAIT);
  std::string name;
  uma_zone_set_maxaction(zone, [&](uma_zone* which) {
    uma_zfree(which, item);
    uma_zdestroy(which);
    EXPECT_EQ(uma_zone_get_max(which), 1);
    for (const ZoneStats& row : m.kernel.zones())
      if (row.name == "act") name = row.name;
  });
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  m.kernel.cpus().clock().advance(1);
  EXPECT_EQ(name, "act");
  for (const ZoneStats& row : m.kernel.zones()) EXPECT_NE(row.name, "act");
}

struct Pool {
  std::vector<std::uint64_t> storage = std::vector<std::uint64_t>(100);
  std::vector<void*> free;
  int imports = 0, released = 0, domain = 7;
  Pool() {
    for (std::uint64_t& word : storage) free.push_back(&word);
  }
};

int pool_import(void* arg, void** store, int count, int domain, int) {
  auto& pool = *static_cast<Pool*>(arg);
  ++pool.imports;
  pool.domain = domain;
  int got = 0;
  for (; got < count && !pool.free.empty(); ++got) {
    store[got] = pool.free.back();
    pool.free.pop_back();
  }
  return got;
}

void pool_release(void* arg, void** store, int count) {
  auto& pool = *static_cast<Pool*>(arg);
  pool.released += count;
  pool.free.insert(pool.free.end(), store, store + count);
}

// REQ: UMA9-54. A cache-only zone has no keg: its items are what import stores.
TEST(Uma9Zones, CacheZonesImportAndRelease) {
  for (const bool inv : {false, true}) {
    KernelConfig config = small_config();
    config.invariants = inv;
    Machine m(config);
    Pool pool;
    static int inits, finis;
    inits = finis = 0;
    uma_zone* zone = uma_zcache_create(
        m.kernel.vm(), "pool", 128, nullptr, nullptr, [](void*, int, int) { return inits++ * 0; },
        [](void*, int) { ++finis; }, pool_import, pool_release, &pool, 0);
    EXPECT_NE(zone->uz_flags & UMA_ZFLAG_CACHE, 0u);
    void* item = uma_zalloc(zone, kM_NOWAIT);
    ASSERT_NE(item, nullptr);
    EXPECT_EQ(pool.imports, 1);
    EXPECT_EQ(inits, 100);  // a bucket of 126 was wanted, 100 there were
    EXPECT_EQ(m.zone("pool").free, 99u);
    EXPECT_EQ(m.zone("pool").used, 1u);
    uma_zfree(zone, item);
    EXPECT_EQ(uma_zone_memory(zone), 0u);  // none in the list
    uma_zone_reclaim(zone, UMA_RECLAIM_DRAIN_CPU);
    EXPECT_EQ(pool.released, 100);
    EXPECT_EQ(finis, 100);
    std::vector<void*> items;
    while (void* next = uma_zalloc(zone, kM_NOWAIT)) items.push_back(next);
    EXPECT_EQ(items.size(), 100u);
    EXPECT_EQ(m.zone("pool").fail, 2u);
    for (void* next : items) uma_zfree(zone, next);
    uma_zdestroy(zone);
    EXPECT_EQ(pool.free.size(), 100u);
    EXPECT_EQ(m.console, "");
  }
}

// REQ: UMA9-55. A secondary zone shares the keg; its init and fini run between keg and caches.
TEST(Uma9Zones, SecondaryZonesShareTheKeg) {
  Machine m;
  static int inits, finis;
  inits = finis = 0;
  uma_zone* primary = zone_of(m, "primary", 256);
  uma_zone* second = uma_zsecond_create(
      "second", nullptr, nullptr, [](void*, int, int) { return inits++ * 0; },
      [](void*, int) { ++finis; }, primary);
  EXPECT_EQ(second->uz_keg, primary->uz_keg);
  EXPECT_NE(second->uz_flags & UMA_ZONE_SECONDARY, 0u);
  void* p = uma_zalloc(second, kM_WAITOK);
  void* q = uma_zalloc(primary, kM_WAITOK);
  EXPECT_EQ(inits, 62);
  EXPECT_EQ(m.zone("second").free, 61u);  // without the keg's
  EXPECT_EQ(m.zone("primary").keg_free_items + 2 * 62, m.zone("primary").keg_pages * 15);
  EXPECT_EQ(check_vm(m.kernel.vm()), "");
  uma_zfree(second, p);
  uma_zone_reclaim(second, UMA_RECLAIM_DRAIN_CPU);
  EXPECT_EQ(finis, 62);
  uma_zfree(primary, q);
  uma_zdestroy(second);
  uma_zdestroy(primary);
  EXPECT_EQ(m.console, "");
  Machine n;
  uma_zone* first = zone_of(n, "first", 256);
  uma_zsecond_create("late", nullptr, nullptr, nullptr, nullptr, first);
  EXPECT_EQ(panic_of([&] { uma_zdestroy(first); }),
            "not modelled: zone first is destroyed before its secondary late");
}

// REQ: UMA9-56. A per-CPU item has a copy a CPU, a page apart; M_ZERO clears them all.
TEST(Uma9Zones, PcpuZones) {
  Machine m(small_config(3));
  for (const std::size_t size : {4, 8, 16, 32, 64}) {
    uma_zone* zone = pcpu_zone(m.kernel.vm(), size);
    ASSERT_NE(zone, nullptr);
    EXPECT_EQ(zone->uz_name, "pcpu-" + std::to_string(size));
    EXPECT_EQ(zone->uz_keg->uk_ppera, 3);
    EXPECT_NE(zone->uz_flags & UMA_ZONE_PCPU, 0u);
  }
  EXPECT_EQ(pcpu_zone(m.kernel.vm(), 128), nullptr);
  uma_zone* zone = pcpu_zone(m.kernel.vm(), 64);
  auto* item = static_cast<std::byte*>(uma_zalloc_pcpu(zone, kM_WAITOK));
  for (int cpu = 0; cpu < 3; ++cpu)
    std::fill_n(static_cast<char*>(zpcpu_get_cpu(item, cpu)), 64, 'x');
  EXPECT_EQ(static_cast<std::byte*>(zpcpu_get_cpu(item, 2)) - item, 8192);
  uma_zfree_pcpu(zone, item);
  EXPECT_EQ(uma_zalloc_pcpu(zone, kM_WAITOK | kM_ZERO), item);
  for (int cpu = 0; cpu < 3; ++cpu) {
    const auto* copy = static_cast<const char*>(zpcpu_get_cpu(item, cpu));
    EXPECT_TRUE(std::all_of(copy, copy + 64, [](char c) { return c == 0; }));
  }
}

// REQ: UMA9-57. The last items are M_USE_RESERVE's.
TEST(Uma9Zones, ReservesAndPreallocation) {
  Machine m;
  uma_zone* zone = zone_of(m, "res", 1000, UMA_ZONE_NOBUCKET);
  uma_prealloc(zone, 9);  // 4 a slab
  EXPECT_EQ(m.zone("res").keg_free_slabs, 3u);
  EXPECT_EQ(uma_zone_memory(zone), 3 * 4096u);
  uma_zone_reserve(zone, 5);
  for (int i = 0; i < 7; ++i) ASSERT_NE(uma_zalloc(zone, kM_NOWAIT | kM_NOVM), nullptr);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT | kM_NOVM), nullptr);
  for (int i = 0; i < 5; ++i)
    ASSERT_NE(uma_zalloc(zone, kM_NOWAIT | kM_NOVM | kM_USE_RESERVE), nullptr);
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT | kM_NOVM | kM_USE_RESERVE), nullptr);
}

// REQ: UMA9-58. NOTOUCH headers are never in the slab; MAXBUCKET begins with the largest buckets.
TEST(Uma9Zones, FlagsOfAZone) {
  Machine m;
  EXPECT_TRUE(keg_layout(16, 7, false, UMA_ZONE_NOTOUCH).offpage);
  EXPECT_NE(zone_of(m, "nt", 16, UMA_ZONE_NOTOUCH)->uz_flags & UMA_ZFLAG_OFFPAGE, 0u);
  EXPECT_EQ(zone_of(m, "max", 4096, UMA_ZONE_MAXBUCKET)->uz_bucket_size, 254);
  EXPECT_EQ(zone_of(m, "no", 64, UMA_ZONE_NOBUCKET)->uz_bucket_size, 0);
  EXPECT_EQ(zone_of(m, "rr", 64, UMA_ZONE_ROUNDROBIN)->uz_flags & UMA_ZONE_FIRSTTOUCH, 0u);
  EXPECT_NE(zone_of(m, "ft", 64)->uz_flags & UMA_ZONE_FIRSTTOUCH, 0u);
  EXPECT_NE(uma_zalloc(zone_of(m, "contig", 10000, UMA_ZONE_CONTIG), kM_WAITOK), nullptr);
  auto* zeroed =
      static_cast<const char*>(uma_zalloc(zone_of(m, "zi", 64, UMA_ZONE_ZINIT), kM_WAITOK));
  EXPECT_EQ(std::count(zeroed, zeroed + 64, 0), 64);
  for (const std::uint32_t flag : {UMA_ZONE_NOTPAGE, UMA_ZONE_CACHESPREAD, UMA_ZONE_SMR,
                                   UMA_ZONE_SECONDARY, UMA_ZFLAG_CACHE}) {
    Machine n;
    EXPECT_EQ(panic_of([&] { zone_of(n, "bad", 64, flag); }).rfind("not modelled: UMA_Z", 0), 0u);
  }
}

// REQ: UMA9-59. UMA_ZONE_VM: buckets for it are made of what there is.
TEST(Uma9Zones, VmZonesAskTheVmForNoBuckets) {
  Machine m;
  uma_zone* zone = zone_of(m, "vm", 64, UMA_ZONE_VM);
  EXPECT_NE(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(m.zone("256 Bucket").keg_pages, 0u);
  EXPECT_EQ(m.zone("vm").free, 62u);  // the keg's: no bucket was filled
}

// REQ: UMA9-72
TEST(Uma9Zones, Constants) {
  EXPECT_EQ(UMA_SLAB_SIZE, 4096u);
  EXPECT_EQ(UMA_MAX_WASTE, 10);
  EXPECT_EQ(UMA_TIMEOUT, 20'000'000'000u);
  EXPECT_EQ(SLAB_MAX_SETSIZE, 512);
  EXPECT_EQ(BUCKET_MAX, 254);
  EXPECT_EQ(UMA_ANYDOMAIN, -1);
  EXPECT_EQ(UMA_RECLAIM_DRAIN, 1);
  EXPECT_EQ(UMA_RECLAIM_DRAIN_CPU, 2);
  EXPECT_EQ(UMA_RECLAIM_TRIM, 3);
  constexpr std::pair<std::uint32_t, std::uint32_t> kFlags[] = {
      {UMA_ZONE_UNMANAGED, 0x1},        {UMA_ZONE_ZINIT, 0x2},
      {UMA_ZONE_CONTIG, 0x4},           {UMA_ZONE_NOTOUCH, 0x8},
      {UMA_ZONE_MALLOC, 0x10},          {UMA_ZONE_NOFREE, 0x20},
      {UMA_ZONE_MTXCLASS, 0x40},        {UMA_ZONE_VM, 0x80},
      {UMA_ZONE_NOTPAGE, 0x100},        {UMA_ZONE_SECONDARY, 0x200},
      {UMA_ZONE_NOBUCKET, 0x400},       {UMA_ZONE_MAXBUCKET, 0x800},
      {UMA_ZONE_CACHESPREAD, 0x2000},   {UMA_ZONE_NODUMP, 0x4000},
      {UMA_ZONE_PCPU, 0x8000},          {UMA_ZONE_FIRSTTOUCH, 0x10000},
      {UMA_ZONE_ROUNDROBIN, 0x20000},   {UMA_ZONE_SMR, 0x40000},
      {UMA_ZONE_NOKASAN, 0x80000},      {UMA_ZFLAG_OFFPAGE, 0x00200000},
      {UMA_ZFLAG_HASH, 0x00400000},     {UMA_ZFLAG_VTOSLAB, 0x00800000},
      {UMA_ZFLAG_CTORDTOR, 0x01000000}, {UMA_ZFLAG_LIMIT, 0x02000000},
      {UMA_ZFLAG_CACHE, 0x04000000},    {UMA_ZFLAG_BUCKET, 0x10000000},
      {UMA_ZFLAG_INTERNAL, 0x20000000}, {UMA_ZFLAG_TRASH, 0x40000000}};
  for (const auto& [flag, value] : kFlags) EXPECT_EQ(flag, value);
  Machine m;
  for (uma_zone* zone : m.kernel.vm().bucket_zones)
    EXPECT_EQ(zone->uz_flags & (UMA_ZONE_MTXCLASS | UMA_ZFLAG_BUCKET | UMA_ZONE_FIRSTTOUCH),
              UMA_ZONE_MTXCLASS | UMA_ZFLAG_BUCKET | UMA_ZONE_FIRSTTOUCH);
}

// REQ: UMA9-73
TEST(Uma9Zones, BucketsOfBucketZones) {
  Machine m;
  Vm& vm = m.kernel.vm();
  m.kernel.cpus().bind(0);
  const auto zone_of_bucket = [&](uma_bucket* bucket) -> std::string {
    return reinterpret_cast<uma_slab*>(vm.slab_word(bucket))->us_keg->uk_name;
  };
  uma_zone& own = *vm.bucket_zones[4];  // "32 Bucket"
  uma_bucket* usual = bucket_alloc(own, nullptr, kM_NOWAIT);
  EXPECT_EQ(zone_of_bucket(usual), "64 Bucket");  // 62 entries
  own.uz_bucket_size = 30;                        // its own
  uma_bucket* next = bucket_alloc(own, nullptr, kM_NOWAIT);
  EXPECT_EQ(zone_of_bucket(next), "64 Bucket");
  uma_zone* plain = zone_of(m, "plain", 512);
  uma_bucket* bucket = bucket_alloc(*plain, nullptr, kM_NOWAIT);
  EXPECT_EQ(zone_of_bucket(bucket), "32 Bucket");
  auto* nested = reinterpret_cast<void*>(std::uintptr_t{UMA_ZFLAG_BUCKET});
  EXPECT_EQ(bucket_alloc(own, nested, kM_NOWAIT), nullptr);
  for (uma_bucket* mine : {usual, next}) bucket_free(own, mine, nullptr);
  bucket_free(*plain, bucket, nullptr);
}

// REQ: UMA9-74
TEST(Uma9Zones, ListsStayBelowTheirMost) {
  Machine m;
  uma_zone* zone = zone_of(m, "few", 64);
  uma_zone_set_maxcache(zone, 100);  // buckets of 25, 50 in the list
  std::vector<void*> items;
  for (int i = 0; i < 200; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
  for (void* item : items) uma_zfree(zone, item);
  const ZoneStats row = m.zone("few");
  EXPECT_EQ(row.bucket_cache_items, 25u);  // 25 + 25 would reach 50
  EXPECT_EQ(row.cpus.at(0).items, 50u);
}

// REQ: UMA9-75
TEST(Uma9Zones, SetMaxWithDomains) {
  KernelConfig config = small_config(2);
  config.domains = 2;
  Machine m(config);
  uma_zone* zone = zone_of(m, "z", 64);
  uma_zone_set_max(zone, 160);  // 3 * 2 + 2 buckets
  EXPECT_EQ(zone->uz_bucket_size, 10);
  EXPECT_EQ(zone->uz_bucket_max, 80u);
  uma_zone* robin = zone_of(m, "rr", 64, UMA_ZONE_ROUNDROBIN);
  uma_zone_set_max(robin, 160);  // 2 * 2
  EXPECT_EQ(robin->uz_bucket_size, 20);
}

// REQ: UMA9-76
TEST(Uma9Zones, ZeroingComesAfterTheConstructor) {
  Machine m;
  uma_zone* zone = uma_zcreate(
      m.kernel.vm(), "ones", 64,
      [](void* mem, int size, void*, int) {
        std::fill_n(static_cast<char*>(mem), size, 'x');
        return 0;
      },
      nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  const auto* item = static_cast<const char*>(uma_zalloc(zone, kM_WAITOK | kM_ZERO));
  EXPECT_EQ(std::count(item, item + 64, 0), 64);
}

// REQ: UMA9-77
TEST(Uma9Zones, MultipageSlabsCanBeForbidden) {
  // 2104 bytes: one in a page is 51 %, nine in five pages are 92 %.
  EXPECT_EQ(keg_layout(2100, 7, false).ppera, 5u);
  EXPECT_EQ(keg_layout(2100, 7, false).ipers, 9u);
  const KegLayout layout = keg_layout(2100, 7, false, 0, 1, false);
  EXPECT_EQ(layout.ppera, 1u);
  EXPECT_EQ(layout.ipers, 1u);
}

// REQ: UMA9-71. The C names, from a driver's file.
TEST(Uma9Zones, KernelCUsesZones) {
  Machine m;
  ASSERT_EQ(Kernel::default_kernel(), &m.kernel);
  EXPECT_EQ(driver_fills_its_zone(40), 40);
  EXPECT_EQ(m.console, "");
}

}  // namespace
}  // namespace dtmalloc
