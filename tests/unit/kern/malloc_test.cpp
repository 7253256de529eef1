// SPDX-License-Identifier: BSD-2-Clause
// The hot functions' edges: guards, twins, threads without a CPU, hooks that misbehave.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <dtmalloc/kern/inline.hpp>
#include <thread>

#include "smp/functions.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

TEST(Malloc, UnboundThreadUsesTheDefaultKernel) {
  Machine m;
  std::thread([&] {
    void* p = kern_malloc(100, &m.type, kM_WAITOK);
    EXPECT_EQ(Kernel::current(), &m.kernel);
    kern_free(p, &m.type);
  }).join();
  EXPECT_EQ(m.stats().numfrees, 1u);
  EXPECT_EQ(Kernel::current(), nullptr);
}

TEST(Malloc, InlinedIsTheSameMalloc) {
  Machine m;
  void* small = inline_malloc(100, &m.type, kM_WAITOK);
  void* again = inline_malloc(100, &m.type, kM_WAITOK);
  void* large = inline_malloc(70000, &m.type, kM_WAITOK);
  std::memset(small, 1, 128);
  kern_free(small, &m.type);
  auto* zeroed = static_cast<const char*>(inline_malloc(100, &m.type, kM_WAITOK | kM_ZERO));
  EXPECT_EQ(zeroed, small);
  EXPECT_EQ(std::count(zeroed, zeroed + 128, '\0'), 128);
  EXPECT_EQ(m.stats().numallocs, 4u);
  EXPECT_EQ(m.stats().memalloced, 3u * 128 + 73728);
  for (const void* block : {static_cast<const void*>(again), static_cast<const void*>(large),
                            static_cast<const void*>(zeroed)})
    inline_free(const_cast<void*>(block), &m.type);
  EXPECT_EQ(m.stats().numfrees, 4u);
  EXPECT_EQ(m.stats().memfreed, m.stats().memalloced);
  EXPECT_NE(panic_of([&] { inline_free(&m, &m.type); }).find("has not been allocated"),
            std::string::npos);
}

TEST(Malloc, ThreadGoesFromKernelToKernel) {
  Machine a, b;
  for (int i = 0; i < 3; ++i) {
    void* p = a.kernel.malloc(100, &a.type, M_WAITOK);
    void* q = b.kernel.malloc(100, &b.type, M_WAITOK);
    a.kernel.free(p, &a.type);
    b.kernel.free(q, &b.type);
  }
  EXPECT_EQ(a.stats().numallocs, 3u);
  EXPECT_EQ(b.stats().numfrees, 3u);
}

TEST(Malloc, TwinWithoutHooksCountsAndNeverFires) {
  Machine m;
  m.kernel.cpus().bind_any();
  m.trace(m.type);
  for (int i = 0; i < 1000; ++i)
    kern_free_nohooks(kern_malloc_nohooks(100, &m.type, kM_WAITOK), &m.type);
  void* large = kern_malloc_nohooks(70000, &m.type, kM_WAITOK | kM_ZERO);
  kern_free_nohooks(large, &m.type);
  EXPECT_EQ(m.fired(), Fired{});
  EXPECT_EQ(m.stats().numallocs, 1001u);
  EXPECT_EQ(m.stats().numfrees, 1001u);
  EXPECT_EQ(m.stats().memalloced, 1000 * 128 + 73728u);
}

TEST(Malloc, InstrumentedTwinFiresAndCountsAsBefore) {
  static std::vector<std::pair<std::uint32_t, std::uintptr_t>> fired;
  fired.clear();
  Machine m;
  m.kernel.cpus().bind_any();
  FunctionProbes& probes = m.kernel.function_probes();
  probes.fire = [](std::uint32_t id, std::uintptr_t arg0, std::uintptr_t, std::uintptr_t,
                   std::uintptr_t, std::uintptr_t) {
    EXPECT_NE(curcpu->critnest.load(), 0u);
    fired.emplace_back(id, arg0);
  };
  probes.ids[static_cast<std::size_t>(KernelFunction::malloc)].entry = 7;
  probes.ids[static_cast<std::size_t>(KernelFunction::free)].return_ = 8;
  m.kernel.set_functions_traced(true);
  m.kernel.free(m.kernel.malloc(100, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(fired, (std::vector<std::pair<std::uint32_t, std::uintptr_t>>{
                       {7, 100}, {8, info_of(KernelFunction::free).size - 1}}));
  m.kernel.set_functions_traced(false);
  m.kernel.free(m.kernel.malloc(100, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(fired.size(), 2u);
  EXPECT_EQ(m.stats().numallocs, 2u);
  EXPECT_EQ(m.stats().numfrees, 2u);
  EXPECT_EQ(m.kernel.cpus().current_thread().frames, nullptr);
}

TEST(Malloc, PanicInAHookLeavesTheSection) {
  for (const bool miss : {false, true}) {
    Machine m;
    m.kernel.cpus().bind_any();
    if (!miss) m.kernel.free(m.kernel.malloc(10, &m.type, M_WAITOK), &m.type);
    m.kernel.set_malloc_probe([](std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                                 std::uintptr_t, std::uintptr_t) {
      EXPECT_NE(curcpu->critnest.load(), 0u);
      throw KernelPanic("in the hook");
    });
    m.kernel.set_malloc_probes_enabled(true);
    m.type.ks_mti.mti_probes[0] = 1;
    EXPECT_EQ(panic_of([&] { m.kernel.malloc(10, &m.type, M_WAITOK); }), "in the hook");
    EXPECT_EQ(curcpu->critnest.load(), 0u);
    EXPECT_EQ(curcpu->critbase, 0u);
  }
}

// With INVARIANTS a malloc(9) inside a probe is a panic, as in the kernel; without it the outer
// section stays closed.
TEST(Malloc, AllocationInsideAHook) {
  static Machine* machine;
  static void* inner;
  auto hook = [](std::uint32_t id, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                 std::uintptr_t) {
    if (id != 1) return;
    inner = machine->kernel.malloc(10, machine->kernel.type("temp"), M_NOWAIT);
    EXPECT_NE(curcpu->critnest.load(), 0u);
  };
  for (const bool inv : {false, true}) {
    KernelConfig config = small_config();
    config.invariants = inv;
    Machine m(config);
    machine = &m;
    m.kernel.set_malloc_probe(hook);
    m.kernel.set_malloc_probes_enabled(true);
    m.type.ks_mti.mti_probes[0] = 1;
    const std::string text = panic_of([&] { m.kernel.malloc(10, &m.type, M_WAITOK); });
    EXPECT_EQ(text, inv ? "malloc: called with spinlock or critical section held" : "");
    if (!inv) {
      EXPECT_NE(inner, nullptr);
      EXPECT_EQ(m.kernel.type_stats(*m.kernel.type("temp")).numallocs, 1u);
    }
  }
}

TEST(Malloc, UnloadedProviderIsAPageFault) {
  Machine m;
  m.trace(m.type);
  m.kernel.set_malloc_probe(nullptr);
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(1, &m.type, M_WAITOK); }),
            "page fault: dtrace_malloc_probe is NULL");
}

TEST(Malloc, CpuThatJoinsLaterHasTheHook) {
  Machine m;
  m.trace(m.type);
  m.kernel.cpus().bind(7);
  m.kernel.malloc(1, &m.type, M_WAITOK);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}}));
}

TEST(Malloc, CallInsideACriticalSectionLeavesItClosed) {
  Machine m;
  m.kernel.cpus().bind_any();
  void* p = m.kernel.malloc(10, &m.type, M_NOWAIT);
  {
    const CriticalSection section;
    m.kernel.free(p, &m.type);
    EXPECT_EQ(curcpu->critnest.load(), 1u);
    EXPECT_EQ(m.kernel.malloc(10, &m.type, M_NOWAIT), p);
    EXPECT_EQ(curcpu->critnest.load(), 1u);
  }
  EXPECT_EQ(curcpu->critnest.load(), 0u);
}

TEST(Malloc, CallWhileUnwindingAPanicDoesNothing) {
  Machine m;
  void* p = m.kernel.malloc(10, &m.type, M_WAITOK);
  struct Quiet {
    Machine& m;
    void* p;
    ~Quiet() {
      m.kernel.free(p, &m.type);
      EXPECT_EQ(m.kernel.malloc(10, &m.type, M_NOWAIT), nullptr);
    }
  };
  EXPECT_NE(panic_of([&] {
              const Quiet quiet{m, p};
              m.kernel.free(&m, &m.type);
            }),
            "");
  EXPECT_EQ(m.stats().numfrees, 0u);
}

}  // namespace
}  // namespace dtmalloc
