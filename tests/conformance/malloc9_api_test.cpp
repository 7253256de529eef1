// SPDX-License-Identifier: BSD-2-Clause
// The interface of malloc(9): values, macros, realloc in its corners, the table of zones.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

extern "C" {
int driver_would_overflow(std::size_t nmemb, std::size_t size);
int driver_flag(int index);
void driver_list(void (*func)(malloc_type*, void*), void* arg);
}

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

// REQ: API-01, API-06
TEST(Api, FlagValues) {
  const int kRows[][2] = {{kM_NOWAIT, 0x1},   {kM_WAITOK, 0x2},      {kM_NORECLAIM, 0x80},
                          {kM_ZERO, 0x100},   {kM_NOVM, 0x200},      {kM_USE_RESERVE, 0x400},
                          {kM_NODUMP, 0x800}, {kM_FIRSTFIT, 0x1000}, {kM_BESTFIT, 0x2000},
                          {kM_EXEC, 0x4000},  {kM_NEXTFIT, 0x8000},  {kM_NEVERFREED, 0x10000}};
  int index = 0;
  for (const auto& row : kRows) {
    EXPECT_EQ(row[0], row[1]);
    EXPECT_EQ(driver_flag(index++), row[1]);
  }
}

// REQ: API-02
TEST(Api, WouldOverflow) {
  constexpr std::size_t k32 = std::size_t{1} << 32;
  struct {
    std::size_t nmemb, size;
    bool overflows;
  } const kRows[] = {{0, 0, false},
                     {0, SIZE_MAX, false},
                     {1, SIZE_MAX, false},
                     {2, SIZE_MAX / 2, false},
                     {2, SIZE_MAX / 2 + 1, true},
                     {k32 - 1, k32 - 1, false},
                     {k32 - 1, k32 + 1, false},
                     {k32, k32 - 1, false},
                     {k32, k32, true},
                     {k32 + 1, k32 - 1, false},
                     {SIZE_MAX, 0, false},
                     {SIZE_MAX, 2, true}};
  for (const auto& row : kRows) {
    EXPECT_EQ(driver_would_overflow(row.nmemb, row.size), row.overflows)
        << row.nmemb << " " << row.size;
    Machine m;
    const std::string text =
        panic_of([&] { m.kernel.mallocarray(row.nmemb, row.size, &m.type, M_NOWAIT); });
    EXPECT_EQ(text, !row.overflows ? ""
                                   : "mallocarray: " + std::to_string(row.nmemb) + " * " +
                                         std::to_string(row.size) + " overflowed");
  }
}

// REQ: API-03
TEST(Api, Realloc) {
  Machine m;
  auto* p = static_cast<unsigned char*>(m.kernel.malloc(128, &m.type, M_WAITOK));
  std::memset(p, 0x41, 128);
  m.trace(m.type);
  // In place: nothing is cleared, nothing fires.
  EXPECT_EQ(m.kernel.realloc(p, 65, &m.type, M_WAITOK | M_ZERO), p);
  EXPECT_EQ(p[0] & p[64] & p[127], 0x41);
  EXPECT_TRUE(m.fired().empty());
  // Half: it moves. What is larger than the old block is zero when asked.
  auto* q = static_cast<unsigned char*>(m.kernel.realloc(p, 64, &m.type, M_WAITOK));
  EXPECT_EQ(m.fired(), (Fired{{false, 64, 2}, {true, 128, 0}}));
  for (int i = 0; i < 64; ++i) ASSERT_EQ(q[i], 0x41);
  auto* r = static_cast<unsigned char*>(m.kernel.realloc(q, 1000, &m.type, M_WAITOK | M_ZERO));
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(r[i], i < 64 ? 0x41 : 0) << i;
  m.fired();
  // Size 0 frees nothing for good: a fresh block of the smallest class.
  void* s = m.kernel.realloc(r, 0, &m.type, M_WAITOK);
  EXPECT_NE(s, nullptr);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {true, 1024, 0}}));
  EXPECT_EQ(m.kernel.malloc_usable_size(s), 16u);
  // Large blocks know their pages.
  void* large = m.kernel.malloc(70000, &m.type, M_WAITOK);
  EXPECT_EQ(m.kernel.realloc(large, 73728, &m.type, M_WAITOK), large);
  EXPECT_NE(m.kernel.realloc(large, 36864, &m.type, M_WAITOK), large);
}

// REQ: API-04
TEST(Api, ReallocThatFails) {
  for (const bool frees : {false, true}) {
    Machine m(small_config(1, 8 << 20));
    auto* p = static_cast<unsigned char*>(m.kernel.malloc(5000, &m.type, M_WAITOK));
    std::memset(p, 0x41, 5000);
    m.exhaust();
    m.trace(m.type);
    EXPECT_EQ(frees ? m.kernel.reallocf(p, 70000, &m.type, M_NOWAIT)
                    : m.kernel.realloc(p, 70000, &m.type, M_NOWAIT),
              nullptr);
    EXPECT_EQ(m.fired(), frees ? (Fired{{true, 8192, 0}}) : Fired{});
    EXPECT_EQ(m.kernel.reallocf(nullptr, 70000, &m.type, M_NOWAIT), nullptr);
    EXPECT_TRUE(m.fired().empty());
    if (!frees) {
      EXPECT_EQ(p[0] & p[4999], 0x41);
      m.kernel.free(p, &m.type);
    }
  }
}

// REQ: API-05
TEST(Api, ZonesOfTheClasses) {
  for (const bool invariants : {false, true}) {
    KernelConfig config = small_config();
    config.invariants = invariants;
    Machine m(config);
    std::vector<std::string> names;
    for (const uma_zone* zone : m.kernel.impl().zones) {
      names.push_back(zone->uz_name);
      EXPECT_EQ(zone->uz_ctor != nullptr, invariants);
      EXPECT_EQ(zone->uz_dtor != nullptr, invariants);
      EXPECT_EQ(zone->uz_keg->uk_init != nullptr, invariants);
      EXPECT_EQ(zone->uz_keg->uk_fini != nullptr, invariants);
    }
    EXPECT_EQ(names, (std::vector<std::string>{
                         "malloc-16", "malloc-32", "malloc-64", "malloc-128", "malloc-256",
                         "malloc-384", "malloc-512", "malloc-1024", "malloc-2048", "malloc-4096",
                         "malloc-8192", "malloc-16384", "malloc-32768", "malloc-65536"}));
  }
}

// REQ: API-07
TEST(Api, SmallPrint) {
  Machine m;
  m.kernel.cpus().bind(0);
  EXPECT_EQ(kern_malloc_usable_size(nullptr), 0u);
  std::vector<malloc_type*> seen;
  driver_list([](malloc_type* type,
                 void* arg) { static_cast<std::vector<malloc_type*>*>(arg)->push_back(type); },
              &seen);
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen[0], &m.type);
  m.trace(m.type);
  m.kernel.contigfree(m.kernel.malloc(100, &m.type, M_WAITOK), 1, &m.type);
  EXPECT_EQ(m.fired(), (Fired{{false, 128, 3}, {true, 128, 0}}));
}

}  // namespace
}  // namespace dtmalloc
