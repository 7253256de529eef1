// SPDX-License-Identifier: BSD-2-Clause
// UMA misused and contended: debug bits, foreign items, the growth of buckets.
#include <gtest/gtest.h>

#include <thread>

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

uma_zone* zone_of(Machine& m, std::size_t size, uma_ctor ctor = nullptr, uma_dtor dtor = nullptr) {
  return uma_zcreate(m.kernel.vm(), "z", size, ctor, dtor, nullptr, nullptr, UMA_ALIGN_PTR, 0);
}

// REQ: UMA9-15. The debug bits of any zone.
TEST(Uma9, DebugBitsFindMisuse) {
  struct Row {
    const char* text;
    std::function<void(uma_zone*, std::byte*)> act;
  };
  const Row rows[] = {
      {"Duplicate free of ", [](uma_zone* z, std::byte* p) { uma_zfree(z, p); }},
      {"Unaligned free of ", [](uma_zone* z, std::byte* p) { uma_zfree(z, p + 1); }},
      {"Duplicate alloc of ",
       [](uma_zone* z, std::byte* p) {
         uma_dbg_alloc(*z, p);
         uma_zalloc(z, kM_WAITOK);
       }},
  };
  for (const Row& row : rows) {
    Machine m(invariants());
    uma_zone* zone = zone_of(m, 100);
    auto* p = static_cast<std::byte*>(uma_zalloc(zone, kM_WAITOK));
    uma_zfree(zone, p);
    const std::string text = panic_of([&] { row.act(zone, p); });
    EXPECT_EQ(text.rfind(row.text, 0), 0u) << text;
    EXPECT_NE(text.find("(z) slab "), std::string::npos) << text;
  }
}

// REQ: UMA9-15. An off-page header is the item of its zone, behind its hash link (5.2).
TEST(Uma9, DebugBitsOfOffpageSlabs) {
  Machine m(invariants());
  void* p = m.kernel.malloc(4096, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  const std::string text = panic_of([&] { m.kernel.free(p, &m.type); });
  EXPECT_NE(text.find("(malloc-4096) slab 0xfffff8000000"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 3), "(0)");
}

// REQ: UMA9-17. An item that is none of the zone's.
TEST(Uma9, ForeignItemsPanic) {
  for (const bool debug : {false, true}) {
    Machine m(debug ? invariants() : small_config());
    uma_zone* zone = zone_of(m, 64);
    uma_zone* other = zone_of(m, 64);
    void* item = uma_zalloc(other, kM_WAITOK);
    uma_zfree(zone, uma_zalloc(zone, kM_WAITOK));
    const std::string text = panic_of([&] {
      uma_zfree(zone, item);
      uma_zdestroy(zone);  // without INVARIANTS: when the item goes to a slab
    });
    char expected[100];
    std::snprintf(expected, sizeof expected,
                  debug ? "uma: Freed item %#lx did not belong to zone z"
                        : "not modelled: an item %#lx of another zone is freed to z",
                  static_cast<unsigned long>(m.kernel.addresses().to_simulated(item)));
    EXPECT_EQ(text, expected);
  }
}

// REQ: UMA9-10. A refused constructor is not followed by the destructor.
TEST(Uma9, RefusedConstructorHasNoDestructor) {
  for (const bool debug : {false, true}) {
    Machine m(debug ? invariants() : small_config());
    static int destroyed;
    destroyed = 0;
    uma_zone* zone = zone_of(
        m, 64, [](void*, int, void*, int) { return 1; }, [](void*, int, void*) { ++destroyed; });
    EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
    EXPECT_EQ(destroyed, 0);
    EXPECT_EQ(m.zone("z").fail, 1u);
  }
}

// REQ: UMA9-18. M_WAITOK with M_NOVM is asserted where a slab is wanted, not on a hit.
TEST(Uma9, WaitokWithNovmIsAssertedAtTheSlab) {
  Machine m(invariants());
  const MallocFlags flags = MallocFlags::from_bits(kM_WAITOK | kM_NOVM);
  m.kernel.malloc(16, &m.type, M_WAITOK);
  EXPECT_NE(m.kernel.malloc(16, &m.type, flags), nullptr);
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(32, &m.type, flags); }),
            "keg_fetch_slab: invalid flags 0x202");
}

// REQ: UMA9-16. Deterministic runs: the zone's lock counts as contended if another CPU took it a
// short virtual time ago; buckets grow by one each time, from the next bucket on.
TEST(Uma9, BucketsGrowUnderContention) {
  Machine m(small_config(2));
  m.kernel.cpus().bind(0);
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(m.kernel.malloc(4096, &m.type, M_WAITOK));
  // REQ: UMA9-78. The list was empty all the time: nobody took its lock.
  m.kernel.cpus().bind(1);
  for (int i = 0; i < 10; ++i) m.kernel.malloc(4096, &m.type, M_WAITOK);
  EXPECT_EQ(m.zone("malloc-4096").bucket_size, 2u);
  // A CPU keeps two buckets of two; the next free gives a full one to the list.
  auto give = [&](int cpu, int count) {
    m.kernel.cpus().bind(cpu);
    for (int i = 0; i < count; ++i) {
      m.kernel.free(blocks.back(), &m.type);
      blocks.pop_back();
    }
  };
  give(0, 10);
  EXPECT_EQ(m.zone("malloc-4096").bucket_size, 2u);  // one CPU: never
  give(1, 5);
  EXPECT_EQ(m.zone("malloc-4096").bucket_size, 3u);
  m.kernel.cpus().clock().advance(1'000'000);
  give(0, 2);
  EXPECT_EQ(m.zone("malloc-4096").bucket_size, 3u);  // long ago
}

// REQ: UMA9-16. Elsewhere the lock itself says so.
TEST(Uma9, BucketsGrow_WhenTheLockIsTaken) {
  KernelConfig config = small_config(2);
  config.mode = RunMode::parallel;
  config.real_clock = true;
  Machine m(config);
  m.kernel.cpus().bind(0);
  uma_zone* zone = m.kernel.impl().zones[9];
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(m.kernel.malloc(4096, &m.type, M_WAITOK));
  const std::uint16_t before = zone->uz_bucket_size;
  std::unique_lock held(zone->uz_domain[0].uzd_lock);
  std::thread other([&] {
    m.kernel.cpus().bind(1);
    for (void* block : blocks) m.kernel.free(block, &m.type);
    m.kernel.cpus().unbind();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  held.unlock();
  other.join();
  EXPECT_EQ(zone->uz_bucket_size, before + 1);
}

// REQ: UMA9-05. Everything that was freed comes back, the last first, bucket by bucket.
TEST(Uma9, FreedItemsComeBackLastFirst) {
  Machine m;
  std::vector<void*> blocks;
  for (int i = 0; i < 3 * 254; ++i) blocks.push_back(m.kernel.malloc(16, &m.type, M_WAITOK));
  for (void* block : blocks) m.kernel.free(block, &m.type);
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    ASSERT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), *block) << block - blocks.rbegin();
}

}  // namespace
}  // namespace dtmalloc
