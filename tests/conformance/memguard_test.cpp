// SPDX-License-Identifier: BSD-2-Clause
// DEBUG_MEMGUARD.
#include "vm/memguard.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

// 1 GiB: a map of a tenth, from AddressMap::kMemguard on.
KernelConfig memguard(std::vector<Tunable> tunables = {{"vm.memguard.desc", "T"}}) {
  KernelConfig config = small_config();
  config.memguard = true;
  config.tunables = std::move(tunables);
  config.console = [](std::string_view) {};
  return config;
}

std::string value(Machine& m, const std::string& name) {
  return m.kernel.sysctl().find("vm.memguard." + name)->read();
}
int set(Machine& m, const std::string& name, const std::string& text) {
  return m.kernel.sysctl().find("vm.memguard." + name)->write(text);
}
std::uint64_t at(Machine& m, const void* p) { return m.kernel.addresses().to_simulated(p); }
bool guarded(Machine& m, const void* p) { return m.kernel.vm().memguard->owns(p); }

// REQ: OPT-40. Said at boot, with the option only.
TEST(Memguard, BootLines) {
  KernelConfig config = memguard();
  std::string console;
  config.console = [&](std::string_view text) { console += text; };
  {
    const Kernel kernel(config);
    EXPECT_EQ(console,
              "MEMGUARD DEBUGGING ALLOCATOR INITIALIZED:\n"
              "\tMEMGUARD map base: 0xfffffe8000000000\n"
              "\tMEMGUARD map size: 104860 KBytes\n");
  }
  console.clear();
  config.memguard = false;
  config.tunables.clear();
  const Kernel kernel(config);
  EXPECT_EQ(console, "");
}

// REQ: OPT-40. One part in vm.memguard.divisor of memory and addresses, a divisor that is none
// counts as 10; at most twice the memory in addresses.
TEST(Memguard, MapSize) {
  constexpr std::uint64_t kGiB = 1ull << 30;
  EXPECT_EQ(Memguard::map_size(kGiB, 10, 262144), 107376640u);
  EXPECT_EQ(Memguard::map_size(kGiB, 0, 262144), 107376640u);
  EXPECT_EQ(Memguard::map_size(kGiB, 2 * kGiB, 262144), 107376640u);
  EXPECT_EQ(Memguard::map_size(kGiB, 4, 262144), kGiB / 4);
  EXPECT_EQ(Memguard::map_size(kGiB, 1, 1000), 2u * 1000 * 4096);
  EXPECT_EQ(Memguard::map_size(1ull << 41, 1, 1ull << 40), 0u);
  Machine m(memguard({{"vm.memguard.divisor", "4"}}));
  EXPECT_EQ(value(m, "divisor"), "4");
  EXPECT_EQ(value(m, "mapsize"), std::to_string(kGiB / 4));
  EXPECT_EQ(value(m, "maplimit"), std::to_string(kGiB / 4));
  EXPECT_EQ(value(m, "phys_limit"), std::to_string(kGiB / 4));
  EXPECT_EQ(value(m, "mapstart"), std::to_string(AddressMap::kMemguard));
}

// REQ: OPT-41. Who is guarded, and what is counted on the way.
TEST(Memguard, Selection) {
  struct Row {
    const char *desc, *options, *minsize, *frequency;
    std::size_t size;
    bool guarded;
    const char *rejects, *hits;
  };
  const Row rows[] = {
      {"", "1", "0", "0", 100, false, "0", "0"},
      {"T", "1", "0", "0", 100, true, "0", "0"},
      {"other", "1", "0", "0", 100, false, "0", "0"},
      {"T", "1", "200", "0", 100, true, "1", "0"},    // too small, but named
      {"", "3", "5000", "0", 4096, false, "1", "0"},  // too small for size and chance
      {"", "3", "0", "0", 4096, true, "0", "0"},      // a page exactly is enough
      {"", "3", "0", "0", 2048, false, "0", "0"},
      {"", "3", "0", "0", 4095, true, "0", "0"},  // its zone's items are a page
      {"", "1", "0", "100000", 100, true, "0", "1"},
      {"", "1", "5000", "100000", 100, false, "2", "0"},
      {"", "1", "101", "100000", 100, true, "1", "1"},  // it is
      {"T", "3", "0", "100000", 4096, true, "0", "0"},  // by size first: no draw
  };
  for (const Row& row : rows) {
    Machine m(memguard({{"vm.memguard.desc", row.desc}}));
    EXPECT_EQ(set(m, "options", row.options), 0);
    EXPECT_EQ(set(m, "minsize", row.minsize), 0);
    EXPECT_EQ(set(m, "frequency", row.frequency), 0);
    void* const p = m.kernel.malloc(row.size, &m.type, M_WAITOK);
    EXPECT_EQ(guarded(m, p), row.guarded) << row.desc << row.size;
    if (row.guarded) {
      EXPECT_EQ(value(m, "minsize_reject"), row.rejects);
    }
    EXPECT_EQ(value(m, "frequency_hits"), row.hits);
    EXPECT_EQ(value(m, "numalloc"), row.guarded ? "1" : "0");
  }
  // Half of all, by the seed's draws.
  Machine m(memguard({{"vm.memguard.frequency", "50000"}}));
  m.kernel.impl().vm->memguard->minsize = 0;
  int count = 0;
  for (int i = 0; i < 400; ++i) count += m.kernel.vm().memguard->wants(8, "x") ? 1 : 0;
  EXPECT_GT(count, 150);
  EXPECT_LT(count, 250);
  EXPECT_EQ(value(m, "frequency_hits"), std::to_string(count));
}

// REQ: OPT-42. Addresses of the first blocks: a guard page before and behind, the end of the page,
// to 16 bytes.
TEST(Memguard, PlacesBlocks) {
  constexpr std::uint64_t kBase = AddressMap::kMemguard;
  Machine m(memguard());
  void* const a = m.kernel.malloc(100, &m.type, M_WAITOK);
  EXPECT_EQ(at(m, a), kBase + 0x2000 - 112);
  void* const b = m.kernel.malloc(4096, &m.type, M_WAITOK);
  EXPECT_EQ(at(m, b), kBase + 0x4000);
  void* const c = m.kernel.malloc(5000, &m.type, M_WAITOK);
  EXPECT_EQ(at(m, c), kBase + 0x7000);
  EXPECT_EQ(value(m, "mapused"), std::to_string((3 + 3 + 4) * 4096));
  EXPECT_EQ(value(m, "wasted"), std::to_string(4096 - 100));
  EXPECT_EQ(value(m, "numalloc"), "3");
  EXPECT_EQ(m.kernel.total_pages() - m.kernel.free_pages(), 4u);
  EXPECT_EQ(m.kernel.block_size(a), 4096u);
  EXPECT_EQ(m.kernel.block_size(c), 8192u);
  EXPECT_EQ(m.kernel.malloc_usable_size(a), 100u);
  m.kernel.free(a, &m.type);
  EXPECT_EQ(value(m, "wasted"), "0");
  EXPECT_EQ(m.kernel.block_size(a), 0u);
  // Next fit: not where a was.
  void* const d = m.kernel.malloc(8, &m.type, M_WAITOK | M_ZERO);
  EXPECT_EQ(at(m, d), kBase + 0xa000 + 0x2000 - 16);
  // No guard pages: the beginning of a page, and no hole between blocks.
  EXPECT_EQ(set(m, "options", "0"), 0);
  void* const e = m.kernel.malloc(100, &m.type, M_WAITOK);
  void* const f = m.kernel.malloc(100, &m.type, M_WAITOK);
  EXPECT_EQ(at(m, e), kBase + 0xd000);
  EXPECT_EQ(at(m, f), kBase + 0xe000);
  // Size 0 is the ordinary path's.
  EXPECT_FALSE(guarded(m, m.kernel.malloc(0, &m.type, M_WAITOK)));
  for (void* p : {b, c, d, e, f}) m.kernel.free(p, &m.type);
  EXPECT_EQ(value(m, "mapused"), "0");
}

// REQ: OPT-43. Nothing is recorded; free() of a guarded block under any type is memguard's.
TEST(Memguard, NoStatisticsNoProbes) {
  Machine m(memguard());
  m.trace(m.type);
  void* const p = m.kernel.malloc(100, &m.type, M_WAITOK);
  void* const q = m.kernel.malloc_aligned(100, 64, &m.type, M_WAITOK);
  EXPECT_TRUE(guarded(m, q));
  m.kernel.free(p, &m.type);
  m.kernel.zfree(q, &m.type);
  EXPECT_EQ(m.fired(), Fired{});
  EXPECT_EQ(m.stats().numallocs, 0u);
  EXPECT_EQ(m.stats().numfrees, 0u);
  // contigmalloc has no memguard.
  EXPECT_FALSE(guarded(m, m.kernel.contigmalloc(100, &m.type, M_WAITOK)));
}

// REQ: OPT-44. Every refusal ends in the ordinary path.
TEST(Memguard, Refusals) {
  {  // a map of 26 pages of addresses; the limit is 25 pages of memory
    KernelConfig config = memguard({{"vm.memguard.desc", "T"}});
    config.mem = 256 * 4096;
    Machine m(config);
    EXPECT_EQ(value(m, "phys_limit"), std::to_string(25 * 4096));
    EXPECT_EQ(value(m, "mapsize"), std::to_string(26 * 4096));
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(guarded(m, m.kernel.malloc(8, &m.type, M_NOWAIT)));
    EXPECT_FALSE(guarded(m, m.kernel.malloc(8, &m.type, M_NOWAIT)));  // 24 pages taken, 2 left
    EXPECT_EQ(value(m, "fail_kva"), "1");
    EXPECT_EQ(set(m, "options", "0"), 0);
    EXPECT_TRUE(guarded(m, m.kernel.malloc(8, &m.type, M_NOWAIT)));
    EXPECT_FALSE(guarded(m, m.kernel.malloc(8, &m.type, M_NOWAIT)));  // at the limit
    EXPECT_EQ(value(m, "fail_pgs"), "1");
    EXPECT_TRUE(guarded(m, m.kernel.malloc(4096, &m.type, M_NOWAIT)));  // no limit for a page
    EXPECT_FALSE(guarded(m, m.kernel.malloc(4096, &m.type, M_NOWAIT)));
    EXPECT_EQ(value(m, "fail_kva"), "2");
    EXPECT_EQ(value(m, "mapused"), std::to_string(26 * 4096));
    EXPECT_EQ(m.stats().numallocs, 3u);
  }
  Machine m(memguard());
  m.exhaust();
  EXPECT_EQ(m.kernel.malloc(4096, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(value(m, "fail_pgs"), "1");
  EXPECT_EQ(value(m, "mapused"), "0");
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(100, &m.type, M_WAITOK); }).rfind("deadlock", 0), 0u);
}

// REQ: OPT-45. What a store does: in the block, behind it in its page, in the guard page, after the
// free.
TEST(Memguard, UnmappedMemoryFaults) {
  enum { kBlock, kBehind, kBefore, kFreed };
  for (const int where : {kBlock, kBehind, kBefore, kFreed}) {
    Machine m(memguard());
    auto* const p = static_cast<std::byte*>(m.kernel.malloc(100, &m.type, M_WAITOK));
    if (where == kFreed) m.kernel.free(p, &m.type);
    std::byte* const to = where == kBehind ? p + 112 : where == kBefore ? p - 4096 : p;
    const std::string text = panic_of([&] { EXPECT_TRUE(m.kernel.poke(to, 5)); });
    EXPECT_EQ(text, where == kBlock ? "" : "page fault") << where;
    if (where == kBlock) {
      EXPECT_EQ(*p, std::byte{5});
      continue;
    }
    char line[80];
    std::snprintf(line, sizeof line, "fault virtual address\t= %#lx\n",
                  static_cast<unsigned long>(
                      at(m, to) == AddressMap::kNoAddress ? AddressMap::kMemguard : at(m, to)));
    EXPECT_NE(m.console.find(line), std::string::npos) << m.console;
  }
  // D cannot read it either.
  Machine m(memguard());
  void* const p = m.kernel.malloc(100, &m.type, M_WAITOK);
  const std::uint64_t simulated = at(m, p);
  EXPECT_EQ(m.kernel.addresses().to_host(simulated, 100), p);
  EXPECT_EQ(m.kernel.addresses().to_host(simulated + 112, 1), nullptr);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.kernel.addresses().to_host(simulated, 1), nullptr);
}

// REQ: OPT-45. The address in the panic is that of the page.
TEST(Memguard, DoubleFree) {
  for (const bool invariants : {false, true}) {
    KernelConfig config = memguard();
    config.invariants = invariants;
    Machine m(config);
    void* const p = m.kernel.malloc(100, &m.type, M_WAITOK);
    m.kernel.free(p, &m.type);
    EXPECT_EQ(panic_of([&] { m.kernel.free(p, &m.type); }),
              "MemGuard detected double-free of 0xfffffe8000001000");
  }
}

// REQ: OPT-46. A guarded block stays guarded whatever its size; the contents move with it.
TEST(Memguard, Realloc) {
  Machine m(memguard());
  auto* const p = static_cast<char*>(m.kernel.malloc(10, &m.type, M_WAITOK));
  std::strcpy(p, "guarded");
  EXPECT_EQ(set(m, "desc", "no more"), 0);
  auto* const q = static_cast<char*>(m.kernel.realloc(p, 6000, &m.type, M_WAITOK));
  EXPECT_TRUE(guarded(m, q));
  EXPECT_STREQ(q, "guarded");
  EXPECT_EQ(m.kernel.malloc_usable_size(q), 6000u);
  auto* const r = static_cast<char*>(m.kernel.realloc(q, 4, &m.type, M_WAITOK));
  EXPECT_TRUE(guarded(m, r));
  EXPECT_EQ(std::string(r, 4), "guar");
  m.kernel.free(r, &m.type);
  EXPECT_EQ(value(m, "mapused"), "0");
  EXPECT_FALSE(guarded(m, m.kernel.malloc(10, &m.type, M_WAITOK)));
  EXPECT_EQ(set(m, "desc", std::string(128, 'x')), EINVAL);
  EXPECT_EQ(set(m, "desc", std::string(127, 'x')), 0);
}

// REQ: OPT-47. uma(9): by name, constructors run, nothing is cached; NOFREE zones with bit 4 only.
TEST(Memguard, Zones) {
  Machine m(memguard({{"vm.memguard.desc", "widgets"}}));
  static int ctors, dtors;
  ctors = dtors = 0;
  uma_zone* const zone = uma_zcreate(
      m.kernel.vm(), "widgets", 100, [](void*, int, void*, int) { return ++ctors, 0; },
      [](void*, int, void*) { ++dtors; }, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  void* const item = uma_zalloc(zone, kM_WAITOK);
  EXPECT_TRUE(guarded(m, item));
  EXPECT_EQ(ctors, 1);
  uma_zfree(zone, item);
  EXPECT_EQ(dtors, 1);
  EXPECT_FALSE(m.kernel.vm().memguard->mapped(item));
  EXPECT_EQ(m.zone("widgets").requests, 0u);
  uma_zdestroy(zone);

  uma_zone* const nofree = uma_zcreate(m.kernel.vm(), "widgets", 100, nullptr, nullptr, nullptr,
                                       nullptr, UMA_ALIGN_PTR, UMA_ZONE_NOFREE);
  EXPECT_FALSE(guarded(m, uma_zalloc(nofree, kM_WAITOK)));
  EXPECT_EQ(set(m, "options", "5"), 0);
  EXPECT_TRUE(guarded(m, uma_zalloc(nofree, kM_WAITOK)));

  // A malloc zone: the block is allocated as any other, and its free is memguard's.
  for (const bool invariants : {false, true}) {
    KernelConfig config = memguard({{"vm.memguard.desc", "malloc-128"}});
    config.invariants = invariants;
    Machine n(config);
    n.trace(n.type);
    void* const p = n.kernel.malloc(100, &n.type, M_WAITOK);
    EXPECT_TRUE(guarded(n, p));
    EXPECT_EQ(n.fired(), (Fired{{false, 128, 3}}));
    n.kernel.free(p, &n.type);
    EXPECT_EQ(n.fired(), Fired{});
  }
}

// REQ: OPT-47. A secondary zone's init and fini run about its constructors; a refusal is a failure.
TEST(Memguard, SecondaryZones) {
  Machine m(memguard({{"vm.memguard.desc", "second"}}));
  static std::string calls;
  static int refused;
  calls.clear();
  refused = 0;
  uma_zone* const primary = uma_zcreate(m.kernel.vm(), "first", 100, nullptr, nullptr, nullptr,
                                        nullptr, UMA_ALIGN_PTR, 0);
  uma_zone* const zone = uma_zsecond_create(
      "second", [](void*, int, void*, int) { return calls += "c", refused; },
      [](void*, int, void*) { calls += "d"; }, [](void*, int, int) { return calls += "i", 0; },
      [](void*, int) { calls += "f"; }, primary);
  void* const item = uma_zalloc(zone, kM_WAITOK);
  EXPECT_TRUE(guarded(m, item));
  uma_zfree(zone, item);
  EXPECT_EQ(calls, "icdf");
  refused = 1;
  EXPECT_EQ(uma_zalloc(zone, kM_NOWAIT), nullptr);
  EXPECT_EQ(calls, "icdficf");
  EXPECT_EQ(m.zone("second").fail, 1u);
}

// REQ: OPT-41. The name is a buffer of 128 characters: a longer tunable loses its end.
TEST(Memguard, LongNameIsCut) {
  const std::string name(130, 'n');
  Machine m(memguard({{"vm.memguard.desc", name}}));
  EXPECT_EQ(value(m, "desc"), name.substr(0, 127));
  malloc_type& cut = m.kernel.define_type("M_CUT", name.substr(0, 127));
  EXPECT_TRUE(guarded(m, m.kernel.malloc(16, &cut, M_WAITOK)));
  EXPECT_EQ(set(m, "desc", ""), 0);
  EXPECT_FALSE(guarded(m, m.kernel.malloc(16, &cut, M_WAITOK)));
  malloc_type& empty = m.kernel.define_type("M_EMPTY", "");
  EXPECT_TRUE(guarded(m, m.kernel.malloc(16, &empty, M_WAITOK)));
}

// REQ: OPT-17, OPT-47. All of UMA by chance: its own buckets are guarded, and out of a store's
// reach.
TEST(Memguard, EverythingByChance) {
  KernelConfig config = memguard({{"vm.memguard.frequency", "100000"}});
  config.invariants = true;
  Machine m(config);
  for (int i = 0; i < 200; ++i) m.kernel.free(m.kernel.malloc(16, &m.type, M_WAITOK), &m.type);
  uma_zone* const zone =
      uma_zcreate(m.kernel.vm(), "z", 64, nullptr, nullptr, nullptr, nullptr, 7, 0);
  void* const item = uma_zalloc(zone, kM_WAITOK);
  EXPECT_TRUE(guarded(m, item));
  uma_zfree(zone, item);
  uma_zdestroy(zone);
  EXPECT_EQ(set(m, "frequency", "0"), 0);
  EXPECT_EQ(value(m, "mapused"), "0");
  EXPECT_EQ(set(m, "desc", "256 Bucket"), 0);
  void* const p = m.kernel.malloc(16, &m.type, M_WAITOK);
  Memguard& memguard = *m.kernel.vm().memguard;
  std::byte* bucket = memguard.base;
  while (!memguard.mapped(bucket)) bucket += 4096;
  const auto refused = m.kernel.poke(bucket, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "not modelled: a store into UMA's own memory");
  m.kernel.free(p, &m.type);
}

}  // namespace
}  // namespace dtmalloc
