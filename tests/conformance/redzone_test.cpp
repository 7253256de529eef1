// SPDX-License-Identifier: BSD-2-Clause
// DEBUG_REDZONE and MALLOC_MAKE_FAILURES.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

KernelConfig redzone(bool invariants = false) {
  KernelConfig config = small_config();
  config.redzone = true;
  config.invariants = invariants;
  return config;
}

std::string value(Kernel& kernel, std::string_view name) {
  return kernel.sysctl().find(name)->read();
}

std::string hex(Machine& m, const void* host) {
  char text[32];
  std::snprintf(text, sizeof text, "%#lx",
                static_cast<unsigned long>(m.kernel.addresses().to_simulated(host)));
  return text;
}

std::byte* bytes(void* p) { return static_cast<std::byte*>(p); }

// REQ: OPT-30, OPT-31, OPT-33. The sheet's table, with both flavours of INVARIANTS.
TEST(Redzone, SizesAndRecords) {
  struct Row {
    std::size_t n, raw;
    std::uint64_t recorded;
    int zindx;
  };
  const Row rows[] = {{0, 272, 384, 5},         {16, 288, 384, 5},   {112, 384, 384, 5},
                      {113, 385, 512, 6},       {300, 828, 1024, 7}, {4096, 8208, 16384, 11},
                      {65536, 69648, 73728, -1}};
  for (const bool invariants : {false, true})
    for (const Row& row : rows) {
      Machine m(redzone(invariants));
      m.trace(m.type);
      void* const p = m.kernel.malloc(row.n, &m.type, M_WAITOK);
      EXPECT_EQ(m.fired(), (Fired{{false, row.recorded, row.zindx}})) << row.n;
      EXPECT_EQ(m.kernel.malloc_usable_size(p), row.n);
      EXPECT_EQ(m.kernel.malloc_size(row.n), row.n > 65536 ? 69632 : m.kernel.malloc_size(row.n));
      EXPECT_EQ(value(m.kernel, "vm.redzone.extra_mem"), std::to_string(row.raw - row.n));
      EXPECT_EQ(m.kernel.block_size(p), row.recorded);
      std::memset(p, 1, row.n);
      m.kernel.free(p, &m.type);
      EXPECT_EQ(m.fired(), (Fired{{true, row.recorded, 0}}));
      EXPECT_EQ(value(m.kernel, "vm.redzone.extra_mem"), "0");
      EXPECT_EQ(m.console, "");
    }
  Machine m(redzone());
  EXPECT_EQ(m.kernel.malloc_size(16), 16u);
  EXPECT_EQ(m.kernel.malloc(SIZE_MAX - 100, &m.type, M_NOWAIT), nullptr);
}

// REQ: OPT-32. One byte and several, before and behind; both stacks; the block is freed after it.
TEST(Redzone, TellsWhatWasOverwritten) {
  Machine m(redzone());
  SimThread& thread = InterruptContext::of_thread(m.kernel.cpus());
  thread.call_sites = {"foo_ioctl+0x40", "foo_attach+0x1c"};
  std::byte* p = bytes(m.kernel.malloc(16, &m.type, M_WAITOK));
  p[16] = std::byte{0};
  thread.call_sites = {"foo_detach+0x2"};
  m.kernel.free(p, &m.type);
  const std::string stacks =
      "Allocation backtrace:\n#0 0xffffffff8040001c at foo_attach+0x1c\n"
      "#1 0xffffffff80402040 at foo_ioctl+0x40\n"
      "Free backtrace:\n#0 0xffffffff80404002 at foo_detach+0x2\n";
  EXPECT_EQ(m.console, "REDZONE: Buffer overflow detected. 1 byte corrupted after " +
                           hex(m, p + 16) + " (16 bytes allocated).\n" + stacks);
  EXPECT_EQ(m.stats().numfrees, 1u);
  m.console.clear();

  thread.call_sites = {"foo_ioctl+0x40", "foo_attach+0x1c"};
  p = bytes(m.kernel.malloc(1000, &m.type, M_WAITOK));
  std::memset(p - 2, 0, 1000 + 2 + 16);
  thread.call_sites = {"foo_detach+0x2"};
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.console, "REDZONE: Buffer underflow detected. 2 bytes corrupted before " + hex(m, p) +
                           " (1000 bytes allocated).\n" + stacks +
                           "REDZONE: Buffer overflow detected. 16 bytes corrupted after " +
                           hex(m, p + 1000) + " (1000 bytes allocated).\n" + stacks);
  thread.call_sites.clear();
}

// REQ: OPT-33. With vm.redzone.panic the report comes first.
TEST(Redzone, PanicsWhenAsked) {
  for (const bool at_boot : {true, false}) {
    KernelConfig config = redzone();
    if (at_boot) config.tunables = {{"vm.redzone.panic", "1"}};
    Machine m(config);
    if (!at_boot) {
      EXPECT_EQ(m.kernel.sysctl().find("vm.redzone.panic")->write("1"), 0);
    }
    std::byte* const p = bytes(m.kernel.malloc(16, &m.type, M_WAITOK));
    p[-1] = std::byte{0};
    EXPECT_EQ(panic_of([&] { m.kernel.free(p, &m.type); }), "Stopping here.");
    EXPECT_EQ(m.console.rfind("REDZONE: Buffer underflow detected. 1 byte corrupted before ", 0),
              0u);
  }
}

// REQ: OPT-31, OPT-35. Every realloc moves, copies the smaller of both requests, and checks the old
// block when it frees it.
TEST(Redzone, ReallocMoves) {
  Machine m(redzone());
  m.trace(m.type);
  std::byte* p = bytes(m.kernel.malloc(100, &m.type, M_WAITOK));
  std::memset(p, 7, 100);
  std::byte* const q = bytes(m.kernel.realloc(p, 100, &m.type, M_WAITOK));
  EXPECT_NE(p, q);
  EXPECT_EQ(m.fired(), (Fired{{false, 384, 5}, {false, 384, 5}, {true, 384, 0}}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(q[i], std::byte{7}) << i;
  q[100] = std::byte{0};
  std::byte* const r = bytes(m.kernel.realloc(q, 50, &m.type, M_WAITOK));
  EXPECT_EQ(r[49], std::byte{7});
  EXPECT_EQ(r[50], std::byte{0x42});
  EXPECT_EQ(m.console.rfind("REDZONE: Buffer overflow detected. 1 byte", 0), 0u);
}

// REQ: OPT-34. Contiguous memory: the inflated size is what the page and the record hold.
TEST(Redzone, GuardsContiguousMemory) {
  Machine m(redzone());
  m.trace(m.type);
  std::byte* const p = bytes(m.kernel.contigmalloc(5000, &m.type, M_WAITOK));
  EXPECT_EQ(m.fired(), (Fired{{false, 12288, -1}}));  // 5000 + 4096 + 16 bytes
  EXPECT_EQ(m.kernel.malloc_usable_size(p), 5000u);
  p[5000] = std::byte{0};
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.fired(), (Fired{{true, 12288, 0}}));
  EXPECT_EQ(m.console.rfind("REDZONE: Buffer overflow detected. 1 byte", 0), 0u);
  EXPECT_EQ(m.kernel.free_pages(), m.kernel.total_pages());
}

// REQ: OPT-32. INVARIANTS fills the header of a freed block with junk: its size leads nowhere.
TEST(Redzone, HeaderOfAFreedBlock) {
  Machine m(redzone(true));
  void* const p = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(panic_of([&] { m.kernel.free(p, &m.type); }), "page fault");
  EXPECT_NE(m.console.find("16 bytes corrupted before "), std::string::npos);
  EXPECT_NE(m.console.find("fault virtual address"), std::string::npos);
}

// --- MALLOC_MAKE_FAILURES

KernelConfig failing(int rate, bool invariants = false) {
  KernelConfig config = small_config();
  config.make_failures = true;
  config.invariants = invariants;
  config.tunables = {{"debug.malloc.failure_rate", std::to_string(rate)}};
  return config;
}

// REQ: OPT-20. Vector 10.
TEST(MakeFailures, EveryThirdFails) {
  for (const bool invariants : {false, true}) {
    Machine m(failing(3, invariants));
    m.trace(m.type);
    for (int call = 1; call <= 7; ++call) {
      const bool fails = m.kernel.malloc(100, &m.type, M_NOWAIT) == nullptr;
      EXPECT_EQ(fails, call == 3 || call == 6) << call;
      EXPECT_EQ(m.fired(), fails ? Fired{} : (Fired{{false, 128, 3}}));
    }
    EXPECT_EQ(value(m.kernel, "debug.malloc.failure_count"), "2");
    EXPECT_EQ(m.stats().numallocs, 5u);
    EXPECT_EQ(m.zone("malloc-128").fail, 0u);
    EXPECT_EQ(m.zone("malloc-128").requests, 5u);
  }
  // A failure marks no class.
  Machine m(failing(1));
  EXPECT_EQ(m.kernel.malloc(100, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.stats().size_mask, 0u);
}

// REQ: OPT-20. The remainder's sign follows the counter's: a negative rate is as good.
TEST(MakeFailures, NegativeRates) {
  for (const int rate : {-1, -3, std::numeric_limits<int>::min()}) {
    Machine m(failing(rate));
    for (int call = 1; call <= 7; ++call)
      EXPECT_EQ(m.kernel.malloc(100, &m.type, M_NOWAIT) == nullptr, call % rate == 0) << call;
  }
}

// REQ: OPT-21
TEST(MakeFailures, ConcernsTheFamily) {
  Machine m(failing(1));
  Kernel& k = m.kernel;
  EXPECT_EQ(k.malloc(100, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(k.malloc(70000, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(k.mallocarray(2, 100, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(k.malloc_aligned(100, 64, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(k.malloc_exec(100, &m.type, M_NOWAIT), nullptr);
  void* const p = k.malloc(100, &m.type, M_WAITOK);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(k.realloc(p, 1000, &m.type, M_NOWAIT), nullptr);  // and p lives
  EXPECT_EQ(k.realloc(p, 100, &m.type, M_NOWAIT), p);         // in place: no request
  EXPECT_NE(k.contigmalloc(100, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(value(k, "debug.malloc.failure_count"), "6");
  uma_zone* const zone =
      uma_zcreate(k.vm(), "z", 100, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  void* const item = uma_zalloc(zone, kM_NOWAIT);
  EXPECT_NE(item, nullptr);
  uma_zfree(zone, item);
  uma_zdestroy(zone);
}

// REQ: OPT-22
TEST(MakeFailures, TheCounterGoesOn) {
  Machine m(failing(0));
  const SysctlNode rate = *m.kernel.sysctl().find("debug.malloc.failure_rate");
  const auto fails = [&] { return m.kernel.malloc(1, &m.type, M_NOWAIT) == nullptr; };
  EXPECT_FALSE(fails());  // not counted
  EXPECT_EQ(rate.write("3"), 0);
  EXPECT_FALSE(fails());  // 1
  EXPECT_FALSE(fails());  // 2
  EXPECT_EQ(rate.write("0"), 0);
  EXPECT_FALSE(fails());  // not counted
  EXPECT_EQ(rate.write("5"), 0);
  EXPECT_FALSE(fails());  // 3
  EXPECT_FALSE(fails());  // 4
  EXPECT_TRUE(fails());   // 5
  EXPECT_EQ(rate.write("1"), 0);
  EXPECT_TRUE(fails());
  EXPECT_EQ(rate.write("x"), EINVAL);
  EXPECT_EQ(rate.write("2147483648"), EINVAL);
  EXPECT_EQ(rate.read(), "1");
}

// REQ: OPT-23. Wrong flags are found in a call that would fail; a wrong context is not.
TEST(MakeFailures, BetweenFlagsAndContexts) {
  Machine m(failing(1, true));
  m.kernel.cpus().bind_any();
  {
    const CriticalSection section;
    EXPECT_EQ(m.kernel.malloc(1, &m.type, M_NOWAIT), nullptr);
  }
  EXPECT_EQ(
      panic_of([&] { m.kernel.malloc(1, &m.type, MallocFlags::from_bits(kM_NOWAIT | kM_WAITOK)); }),
      "malloc: flags may not include both M_WAITOK and M_NOWAIT");
}

}  // namespace
}  // namespace dtmalloc
