// SPDX-License-Identifier: BSD-2-Clause
// Where releases differ: each field of KernelRelease, on each release.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

KernelConfig of(int release, bool invariants = false) {
  KernelConfig config = small_config();
  config.release = release;
  config.invariants = invariants;
  return config;
}

std::string hex(Machine& m, const void* host) {
  char text[32];
  std::snprintf(text, sizeof text, "%#lx",
                static_cast<unsigned long>(m.kernel.addresses().to_simulated(host)));
  return text;
}

const int kOlder[] = {8, 12, 14};

// REQ: RELEASE-01
TEST(Release, RowsFollowTheirSources) {
  for (const int version : KernelRelease::versions()) {
    const KernelRelease& row = *KernelRelease::find(version);
    const bool newest = version == 16;
    EXPECT_EQ(row.contig_cookie, newest) << version;
    EXPECT_EQ(row.wait_flags_asserted, newest) << version;
    EXPECT_EQ(row.large_by_domainset, newest) << version;
    EXPECT_EQ(row.size_of_large, newest) << version;
    EXPECT_EQ(row.contig_redzone, newest) << version;
    EXPECT_EQ(row.panic_names_function, newest) << version;
    EXPECT_EQ(row.malloc_ctor_gets_zone, newest) << version;
    EXPECT_EQ(row.dtmalloc_node, !newest) << version;
    EXPECT_EQ(row.notrim, newest) << version;
  }
  EXPECT_EQ(KernelRelease::versions(), (std::vector<int>{8, 12, 14, 16}));
}

// REQ: RELEASE-02
TEST(Release, FreeOfContiguousMemory) {
  for (const bool zero : {false, true}) {
    const auto give_back = [&](Machine& m, void* p) {
      return panic_of([&] { zero ? m.kernel.zfree(p, &m.type) : m.kernel.free(p, &m.type); });
    };
    Machine m(of(16));
    EXPECT_EQ(give_back(m, m.kernel.contigmalloc(5000, &m.type, M_WAITOK)), "");
    EXPECT_EQ(m.stats().memfreed, 8192u);
    for (const int release : kOlder) {
      Machine old(of(release));
      void* p = old.kernel.contigmalloc(5000, &old.type, M_WAITOK);
      EXPECT_EQ(give_back(old, p),
                "free: address " + hex(old, p) + "(" + hex(old, p) + ") has not been allocated.\n");
      EXPECT_EQ(old.stats().numfrees, 0u);
    }
  }
}

// REQ: RELEASE-03
TEST(Release, ContigfreeAndItsSize) {
  Machine m(of(16));
  m.kernel.contigfree(m.kernel.contigmalloc(5000, &m.type, M_WAITOK), 1, &m.type);
  EXPECT_EQ(m.stats().memfreed, 8192u);
  m.kernel.contigfree(nullptr, 5000, &m.type);
  EXPECT_EQ(m.stats().numfrees, 1u);
  for (const int release : kOlder) {
    Machine old(of(release));
    const std::uint64_t before = old.kernel.free_pages();
    old.trace(old.type);
    old.kernel.contigfree(old.kernel.contigmalloc(5000, &old.type, M_WAITOK), 5000, &old.type);
    EXPECT_EQ(old.fired(), (test::Fired{{false, 8192, -1}, {true, 8192, 0}}));
    EXPECT_EQ(old.kernel.free_pages(), before);
    void* p = old.kernel.contigmalloc(5000, &old.type, M_WAITOK);
    EXPECT_EQ(panic_of([&] { old.kernel.contigfree(p, 1, &old.type); }),
              "not modelled: contigfree of 1 bytes of a block of 8192");
    Machine null(of(release));
    EXPECT_EQ(panic_of([&] { null.kernel.contigfree(nullptr, 1, &null.type); }),
              "page fault: contigfree of NULL");
    Machine small(of(release));
    void* item = small.kernel.malloc(100, &small.type, M_WAITOK);
    EXPECT_EQ(
        panic_of([&] { small.kernel.contigfree(item, 100, &small.type); }),
        "not modelled: contigfree of " + hex(small, item) + ", which contigmalloc did not give");
  }
}

// REQ: RELEASE-04
TEST(Release, BadWaitFlags) {
  for (const int flags : {0, kM_WAITOK | kM_NOWAIT}) {
    Machine m(of(16, true));
    EXPECT_EQ(panic_of([&] {
                m.kernel.cpus().bind(0);
                kern_malloc(16, &m.type, flags);
              }),
              flags == 0 ? "malloc: flags must include either M_WAITOK or M_NOWAIT"
                         : "malloc: flags may not include both M_WAITOK and M_NOWAIT");
    for (const int release : kOlder) {
      for (const bool invariants : {true, false}) {
        Machine old(of(release, invariants));
        old.kernel.cpus().bind(0);
        old.kernel.cpus().current_thread().call_sites = {"foo_attach+0x1c", "foo_alloc"};
        EXPECT_NE(kern_malloc(16, &old.type, flags), nullptr);
        EXPECT_NE(kern_malloc(16, &old.type, flags), nullptr);
        // malloc(9) says it once, UMA each time (spec/malloc9.md 6.2).
        const std::string sites = "  at foo_alloc\n  at foo_attach+0x1c\n";
        const std::string uma = "uma_zalloc* called with bad WAIT flags:\n" + sites;
        EXPECT_EQ(old.console, !invariants ? ""
                                           : "Bad malloc flags: " + std::to_string(flags) + "\n" +
                                                 sites + uma + uma);
        old.kernel.cpus().current_thread().call_sites.clear();
      }
    }
  }
}

// REQ: RELEASE-05
TEST(Release, MallocSizeOfLarge) {
  for (const int release : KernelRelease::versions()) {
    Machine m(of(release));
    const std::size_t zmax = m.kernel.kmem_zmax();
    EXPECT_EQ(m.kernel.malloc_size(zmax), zmax);
    EXPECT_EQ(m.kernel.malloc_size(zmax + 1), release == 16 ? zmax + 4096 : 0) << release;
  }
}

// REQ: RELEASE-06
TEST(Release, UsableSizeOfContiguousMemory) {
  Machine m(of(16));
  EXPECT_EQ(m.kernel.malloc_usable_size(m.kernel.contigmalloc(5000, &m.type, M_WAITOK)), 8192u);
  for (const int release : kOlder) {
    Machine old(of(release));
    void* p = old.kernel.contigmalloc(5000, &old.type, M_WAITOK);
    EXPECT_EQ(
        panic_of([&] { old.kernel.malloc_usable_size(p); }),
        "malloc_usable_size: address " + hex(old, p) + "(" + hex(old, p) + ") is not allocated");
    Machine large(of(release));
    EXPECT_EQ(large.kernel.malloc_usable_size(large.kernel.malloc(70000, &large.type, M_WAITOK)),
              73728u);
  }
}

// REQ: RELEASE-07
TEST(Release, PanicOfFree) {
  for (const int release : KernelRelease::versions()) {
    for (const bool zero : {false, true}) {
      Machine m(of(release));
      auto* p = static_cast<std::byte*>(m.kernel.malloc(16, &m.type, M_WAITOK)) + (1 << 20);
      const std::string address =
          "address " + hex(m, p) + "(" +
          hex(m, reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) &
                                         ~std::uintptr_t{4095})) +
          ") has not been allocated";
      EXPECT_EQ(panic_of([&] { zero ? m.kernel.zfree(p, &m.type) : m.kernel.free(p, &m.type); }),
                release == 16 ? (zero ? "_free(1): " : "_free(0): ") + address
                              : "free: " + address + ".\n");
    }
  }
}

// REQ: RELEASE-08
TEST(Release, UseAfterFreeNamesTheZone) {
  for (const int release : KernelRelease::versions()) {
    for (const bool aligned : {false, true}) {
      Machine m(of(release, true));
      void* p = m.kernel.malloc(64, &m.type, M_WAITOK);
      m.kernel.free(p, &m.type);
      std::memset(p, 0x41, 8);
      EXPECT_EQ(panic_of([&] {
                  aligned ? m.kernel.malloc_aligned(64, 64, &m.type, M_WAITOK)
                          : m.kernel.malloc(64, &m.type, M_WAITOK);
                }),
                "Memory modified after free " + hex(m, p) + " (64, " +
                    (release == 16 ? "malloc-64" : "") + ", T) + 0 = 4141414141414141\n");
    }
  }
}

// REQ: RELEASE-09
TEST(Release, ReallocOfContiguousMemory) {
  for (const int release : KernelRelease::versions()) {
    Machine m(of(release, true));
    void* p = m.kernel.contigmalloc(5000, &m.type, M_WAITOK);
    const std::string text = panic_of([&] { m.kernel.realloc(p, 100, &m.type, M_WAITOK); });
    if (release == 16) {
      EXPECT_TRUE(text.starts_with("realloc: called for addr " + hex(m, p) +
                                   " of unsupported allocation type; slab 0x"))
          << text;
    } else {
      EXPECT_EQ(text, "realloc: address " + hex(m, p) + " out of range");
    }
  }
}

}  // namespace
}  // namespace dtmalloc
