// SPDX-License-Identifier: BSD-2-Clause
// Where the manual pages of malloc and contigmalloc say something else than the code does.
#include <gtest/gtest.h>

#include <cstring>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

// REQ: MANUAL-01
TEST(Manual, ClassesAboveAPage) {
  Machine m;
  m.trace(m.type);
  for (const std::size_t size : {300u, 5000u, 33000u, 65536u, 65537u})
    m.kernel.malloc(size, &m.type, M_WAITOK);
  EXPECT_EQ(m.fired(), (Fired{{false, 384, 5},
                              {false, 8192, 10},
                              {false, 65536, 13},
                              {false, 65536, 13},
                              {false, 69632, -1}}));
}

// REQ: MANUAL-02
TEST(Manual, AlignmentOf384) {
  Machine m;
  EXPECT_EQ(m.zone("malloc-384").align, 7u);
  EXPECT_EQ(m.zone("malloc-256").align, 255u);
  bool odd = false;
  for (int i = 0; i < 40; ++i) {
    const auto at = m.kernel.addresses().to_simulated(m.kernel.malloc(384, &m.type, M_WAITOK));
    EXPECT_EQ(at % 128, 0u);
    odd |= at % 256 != 0;
  }
  EXPECT_TRUE(odd);
}

// REQ: MANUAL-03
TEST(Manual, ContigmallocHeedsItsFlags) {
  Machine m(small_config(1, 8 << 20));
  for (int i = 0; i < 4; ++i) {
    auto* p = static_cast<unsigned char*>(m.kernel.contigmalloc(8192, &m.type, M_NOWAIT | M_ZERO));
    EXPECT_EQ(p[0] | p[4095] | p[8191], 0);
    std::memset(p, 0x41, 8192);
    m.kernel.free(p, &m.type);
  }
  for (const int flag : {kM_NODUMP, kM_NORECLAIM}) {
    m.trace(m.type);
    m.kernel.free(kern_contigmalloc(5000, &m.type, kM_NOWAIT | flag, 0, ~std::uint64_t{0}, 4096, 0),
                  &m.type);
    EXPECT_EQ(m.fired(), (Fired{{false, 8192, -1}, {true, 8192, 0}}));
  }
  m.exhaust();
  EXPECT_EQ(m.kernel.contigmalloc(4096, &m.type, M_NOWAIT), nullptr);
  EXPECT_NE(m.kernel.contigmalloc(4096, &m.type, M_NOWAIT | M_USE_RESERVE), nullptr);
}

// REQ: MANUAL-04
TEST(Manual, ContigmallocWaits) {
  Machine m(small_config(1, 8 << 20));
  m.exhaust();
  EXPECT_EQ(panic_of([&] { m.kernel.contigmalloc(5000, &m.type, M_WAITOK); }),
            "deadlock: kernel (tid 100000): contigmalloc 5000 M_T M_WAITOK waits for free pages");
}

// REQ: MANUAL-05
TEST(Manual, ContigmallocOfNonsense) {
  struct {
    std::size_t size, alignment;
    std::uint64_t boundary;
    const char* text;
  } const kRows[] = {
      {0, 4096, 0, "contigmalloc: size 0 alignment 0x1000 boundary 0"},
      {4096, 3, 0, "contigmalloc: size 0x1000 alignment 0x3 boundary 0"},
      {4096, 4096, 12288, "contigmalloc: size 0x1000 alignment 0x1000 boundary 0x3000"}};
  for (const auto& row : kRows) {
    for (const bool invariants : {false, true}) {
      KernelConfig config = small_config();
      config.invariants = invariants;
      Machine m(config);
      void* p = &m;
      const std::string text = panic_of([&] {
        p = m.kernel.contigmalloc(row.size, &m.type, M_NOWAIT, 0, ~std::uint64_t{0}, row.alignment,
                                  row.boundary);
      });
      EXPECT_EQ(text, invariants ? row.text : "");
      if (!invariants) {
        EXPECT_EQ(p, nullptr);
      }
    }
  }
}

}  // namespace
}  // namespace dtmalloc
