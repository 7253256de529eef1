// SPDX-License-Identifier: BSD-2-Clause
// The assertions and panics of malloc(9) and uma(9) that flags, versions and contexts trip, to the
// letter; what a panic leaves behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

KernelConfig invariants(bool on = true) {
  KernelConfig config = small_config();
  config.invariants = on;
  return config;
}

MallocFlags flags(int bits) { return MallocFlags::from_bits(bits); }
CpuSet& cpus(Machine& m) { return m.kernel.cpus(); }
std::string hex(Machine& m, const void* host) {
  char text[32];
  std::snprintf(text, sizeof text, "%#lx",
                static_cast<unsigned long>(m.kernel.addresses().to_printed(host)));
  return text;
}

struct Row {
  const char* text;
  bool always;  // without INVARIANTS too
  std::function<void(Machine&)> act;
};

// REQ: OPT-50, OPT-51, OPT-55. One row a text of spec/malloc9.md 6.6. Four of them no caller can
// reach, as the functions are called with what they assert, or boot comes first:
//   malloc_domain: Called with bad flag / size combination
//   contigmalloc_size, malloc_large_size: called on non-... allocation
//   malloc_init() called before vm_mem_init()
// `Tune VM_KMEM_SIZE_* for the platform` is OPT-08's.
TEST(Contexts, EveryText) {
  const Row rows[] = {
      {"malloc: bad malloc type version", false,
       [](Machine& m) {
         m.type.ks_version = 5;
         m.kernel.malloc(1, &m.type, M_NOWAIT);
       }},
      {"malloc: flags must include either M_WAITOK or M_NOWAIT", false,
       [](Machine& m) { m.kernel.malloc(1, &m.type, flags(0)); }},
      {"malloc: flags may not include both M_WAITOK and M_NOWAIT", false,
       [](Machine& m) { m.kernel.malloc(1, &m.type, flags(kM_WAITOK | kM_NOWAIT)); }},
      {"malloc: M_NEVERFREED is for internal use only", false,
       [](Machine& m) { m.kernel.malloc(1, &m.type, flags(kM_NOWAIT | kM_NEVERFREED)); }},
      {"malloc(M_WAITOK) in interrupt context", false,
       [](Machine& m) {
         const InterruptContext interrupt(cpus(m));
         m.kernel.malloc(1, &m.type, M_NOWAIT);
         m.kernel.malloc(1, &m.type, M_WAITOK);
       }},
      {"malloc(M_WAITOK) with sleeping prohibited", false,
       [](Machine& m) {
         const NoSleeping region(cpus(m));
         m.kernel.malloc(1, &m.type, M_NOWAIT);
         m.kernel.malloc(1, &m.type, M_WAITOK);
       }},
      {"malloc: called with spinlock or critical section held", false,
       [](Machine& m) {
         cpus(m).bind_any();
         const CriticalSection section;
         m.kernel.malloc(1, &m.type, M_NOWAIT);
       }},
      {"malloc(M_WAITOK) returned NULL", false,
       [](Machine& m) {
         m.kernel.impl().zones[0]->uz_ctor = [](void*, int, void*, int) { return 1; };
         m.kernel.malloc(1, &m.type, M_WAITOK);
       }},
      {"malloc_domainset_aligned: wrong align 0x3 size 0x5", false,
       [](Machine& m) { m.kernel.malloc_aligned(5, 3, &m.type, M_NOWAIT); }},
      {"malloc_domainset_aligned: align 0x2000 (size 0x5) too large", false,
       [](Machine& m) { m.kernel.malloc_aligned(5, 8192, &m.type, M_NOWAIT); }},
      {"free: bad malloc type version", false,
       [](Machine& m) {
         m.type.ks_version = 5;
         m.kernel.free(nullptr, &m.type);
       }},
      {"free: called with spinlock or critical section held", false,
       [](Machine& m) {
         void* const p = m.kernel.malloc(1, &m.type, M_NOWAIT);
         const CriticalSection section;
         m.kernel.free(p, &m.type);
       }},
      {"realloc: bad malloc type version", false,
       [](Machine& m) {
         m.type.ks_version = 5;
         m.kernel.realloc(nullptr, 1, &m.type, M_NOWAIT);
       }},
      {"realloc: called with spinlock or critical section held", false,
       [](Machine& m) {
         cpus(m).bind_any();
         const CriticalSection section;
         m.kernel.realloc(nullptr, 1, &m.type, M_NOWAIT);
       }},
      {"realloc: address 0xfffff80000100000 out of range", false,
       [](Machine& m) { m.kernel.realloc(m.kernel.vm().arena + (1 << 20), 1, &m.type, M_NOWAIT); }},
      {"malloc_uninit: bad malloc type version", false,
       [](Machine& m) {
         m.type.ks_version = 5;
         m.kernel.malloc_uninit(&m.type);
       }},
      {"malloc_uninit: type 'T' not found", true,
       [](Machine& m) {
         m.kernel.malloc_uninit(&m.type);
         m.kernel.malloc_uninit(&m.type);
       }},
      {"Assertion (flags & M_EXEC) == 0 failed at malloc", false,
       [](Machine& m) { m.kernel.malloc(1, &m.type, flags(kM_NOWAIT | kM_EXEC)); }},
      {"mallocarray: 8589934592 * 8589934592 overflowed", true,
       [](Machine& m) { m.kernel.mallocarray(1ull << 33, 1ull << 33, &m.type, M_NOWAIT); }},
      {"_free(0): address 0xfffff80000100008(0xfffff80000100000) has not been allocated", true,
       [](Machine& m) { m.kernel.free(m.kernel.vm().arena + (1 << 20) + 8, &m.type); }},
      {"_free(1): address 0xfffff80000100008(0xfffff80000100000) has not been allocated", true,
       [](Machine& m) { m.kernel.zfree(m.kernel.vm().arena + (1 << 20) + 8, &m.type); }},
      {"malloc_usable_size: address 0xfffff80000100008(0xfffff80000100000) is not allocated", true,
       [](Machine& m) { m.kernel.malloc_usable_size(m.kernel.vm().arena + (1 << 20) + 8); }},
      {"malloc_init: type mine with unsupported version 2024042901", true,
       [](Machine& m) {
         malloc_type type{nullptr, 2024042901, "mine", {}};
         m.kernel.malloc_init(&type);
       }},
  };
  for (const Row& row : rows) {
    Machine m(invariants());
    EXPECT_EQ(panic_of([&] { row.act(m); }), row.text);
    // The machine can still be read.
    EXPECT_NO_THROW(m.kernel.zones());
    EXPECT_NO_THROW(m.kernel.leaks());
    if (!row.always) continue;
    Machine n(invariants(false));
    EXPECT_EQ(panic_of([&] { row.act(n); }), row.text);
  }
}

// REQ: OPT-50. A corrupted subzone number, in kernels that have several.
TEST(Contexts, SubzoneOutOfRange) {
  for (const bool on : {true, false}) {
    KernelConfig config = invariants(on);
    config.maxzones = 8;
    Machine m(config);
    m.type.ks_mti.mti_zone = 8;
    EXPECT_EQ(panic_of([&] { m.kernel.malloc(1, &m.type, M_NOWAIT); }),
              "mti_zone 8 out of range 8");
  }
}

// REQ: OPT-50. Alignment 0 passes for a power of two, and the result's assertion finds it.
TEST(Contexts, AlignmentZero) {
  Machine m(invariants());
  const std::string text = panic_of([&] { m.kernel.malloc_aligned(10, 0, &m.type, M_NOWAIT); });
  EXPECT_EQ(text.rfind("malloc_domainset_aligned: result not aligned 0xfffff8", 0), 0u) << text;
  EXPECT_TRUE(text.ends_with(" size 0xa allocsize 0x10 align 0")) << text;
  Machine n(invariants(false));
  EXPECT_NE(n.kernel.malloc_aligned(10, 0, &n.type, M_NOWAIT), nullptr);
}

// REQ: OPT-51. Regions nest and end; the assertions are those of the thread.
TEST(Contexts, RegionsEnd) {
  Machine m(invariants());
  {
    const InterruptContext outer(cpus(m));
    { const InterruptContext inner(cpus(m)); }
    EXPECT_EQ(cpus(m).current_thread().intr_nesting, 1);
  }
  {
    const NoSleeping outer(cpus(m));
    { const NoSleeping inner(cpus(m)); }
    EXPECT_EQ(cpus(m).current_thread().no_sleeping, 1);
  }
  EXPECT_NE(m.kernel.malloc(1, &m.type, M_WAITOK), nullptr);
  EXPECT_EQ(cpus(m).current_thread().intr_nesting, 0);
  EXPECT_EQ(cpus(m).current_thread().no_sleeping, 0);
}

// REQ: OPT-52. uma(9)'s own assertions; the report of bad flags comes ten times.
TEST(Contexts, Uma) {
  const auto zone = [](Machine& m) {
    return uma_zcreate(m.kernel.vm(), "z", 64, nullptr, nullptr, nullptr, nullptr, 7, 0);
  };
  {
    Machine m(invariants());
    EXPECT_EQ(panic_of([&] { uma_zalloc(zone(m), kM_NOWAIT | kM_EXEC); }),
              "uma_zalloc_debug: called with M_EXEC");
  }
  {
    Machine m(invariants());
    cpus(m).bind_any();
    uma_zone* const z = zone(m);
    const CriticalSection section;
    EXPECT_EQ(panic_of([&] { uma_zalloc(z, kM_NOWAIT); }),
              "uma_zalloc_debug: called within spinlock or critical section");
  }
  {
    Machine m(invariants());
    uma_zone* const z = zone(m);
    void* const item = uma_zalloc(z, kM_NOWAIT);
    const CriticalSection section;
    EXPECT_EQ(panic_of([&] { uma_zfree(z, item); }),
              "uma_zfree_debug: called with spinlock or critical section held");
  }
  Machine m(invariants());
  uma_zone* const z = zone(m);
  InterruptContext::of_thread(cpus(m)).call_sites = {"foo"};
  std::vector<void*> items;
  for (int i = 0; i < 12; ++i)
    items.push_back(uma_zalloc(z, i % 2 == 0 ? 0 : kM_NOWAIT | kM_WAITOK));
  std::string expected;
  for (int i = 0; i < 10; ++i) expected += "uma_zalloc* called with bad WAIT flags:\n  at foo\n";
  EXPECT_EQ(m.console, expected);
  for (void* item : items) uma_zfree(z, item);
  uma_zdestroy(z);
  cpus(m).current_thread().call_sites.clear();
}

// REQ: OPT-53. A panic has the thread's call sites, innermost first, and the numbers stay.
TEST(Contexts, PanicLeavesTheMachineReadable) {
  Machine m(invariants());
  void* const p = m.kernel.malloc(100, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  InterruptContext::of_thread(cpus(m)).call_sites = {"foo_ioctl+0x40", "foo_detach+0x2"};
  try {
    m.kernel.free(p, &m.type);
    ADD_FAILURE() << "no panic";
  } catch (const KernelPanic& panic) {
    EXPECT_EQ(panic.backtrace(), (std::vector<std::string>{"foo_detach+0x2", "foo_ioctl+0x40"}));
    EXPECT_EQ(std::string(panic.what()).rfind("Duplicate free of " + hex(m, p), 0), 0u);
  }
  EXPECT_EQ(m.stats().numallocs, 1u);
  EXPECT_EQ(m.stats().numfrees, 1u);
  EXPECT_EQ(m.zone("malloc-128").requests, 1u);
  EXPECT_EQ(m.kernel.sysctl().find("kern.malloc_count")->read(), "6");
  cpus(m).current_thread().call_sites.clear();
}

// REQ: OPT-54. The text is the format's: one newline at its end.
TEST(Contexts, TrashTextEndsItsLineOnce) {
  Machine m(invariants());
  auto* const p = static_cast<std::byte*>(m.kernel.malloc(16, &m.type, M_WAITOK));
  m.kernel.free(p, &m.type);
  EXPECT_TRUE(m.kernel.poke(p, 0x41));
  const std::string text = panic_of([&] { m.kernel.malloc(16, &m.type, M_WAITOK); });
  EXPECT_TRUE(text.ends_with(") + 0 = deadc0dedeadc041\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace dtmalloc
