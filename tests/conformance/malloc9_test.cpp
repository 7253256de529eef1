// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) as spec/malloc9.md has it: classes, the order of events, every panic text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <set>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

constexpr std::size_t kClasses16[] = {16,   32,   64,   128,  256,   384,   512,
                                      1024, 2048, 4096, 8192, 16384, 32768, 65536};

// REQ: MALLOC9-01. D scripts and kernel C read these structures by offset.
TEST(Malloc9, StructuresAreLaidOutAsTheKernels) {
  struct Row {
    const char* field;
    std::size_t offset, expected;
  };
  const Row rows[] = {
      {"mts_memalloced", offsetof(malloc_type_stats, mts_memalloced), 0},
      {"mts_memfreed", offsetof(malloc_type_stats, mts_memfreed), 8},
      {"mts_numallocs", offsetof(malloc_type_stats, mts_numallocs), 16},
      {"mts_numfrees", offsetof(malloc_type_stats, mts_numfrees), 24},
      {"mts_size", offsetof(malloc_type_stats, mts_size), 32},
      {"_mts_reserved1", offsetof(malloc_type_stats, _mts_reserved1), 40},
      {"_mts_reserved2", offsetof(malloc_type_stats, _mts_reserved2), 48},
      {"_mts_reserved3", offsetof(malloc_type_stats, _mts_reserved3), 56},
      {"sizeof malloc_type_stats", sizeof(malloc_type_stats), 64},
      {"mti_probes", offsetof(malloc_type, ks_mti.mti_probes), 24},
      {"mti_zone", offsetof(malloc_type, ks_mti.mti_zone), 32},
      {"mti_stats", offsetof(malloc_type, ks_mti.mti_stats), 40},
      {"mti_spare", offsetof(malloc_type, ks_mti.mti_spare), 48},
      {"sizeof malloc_type_internal", sizeof(malloc_type_internal), 88},
      {"ks_next", offsetof(malloc_type, ks_next), 0},
      {"ks_version", offsetof(malloc_type, ks_version), 8},
      {"ks_shortdesc", offsetof(malloc_type, ks_shortdesc), 16},
      {"sizeof malloc_type", sizeof(malloc_type), 112},
  };
  for (const Row& row : rows) EXPECT_EQ(row.offset, row.expected) << row.field;
}

// REQ: MALLOC9-02. Every class with the sizes around its edges.
TEST(Malloc9, SizeGoesToItsClass) {
  Machine m;
  m.trace(m.type);
  ASSERT_EQ(m.kernel.classes().size(), std::size(kClasses16));
  std::size_t below = 0;
  for (std::size_t zindx = 0; zindx < std::size(kClasses16); ++zindx) {
    const std::size_t size = kClasses16[zindx];
    for (const std::size_t asked : {below == 0 ? 0 : below + 1, size - 1, size}) {
      void* block = m.kernel.malloc(asked, &m.type, M_WAITOK);
      EXPECT_EQ(m.fired(), (Fired{{false, size, static_cast<int>(zindx)}})) << asked;
      EXPECT_EQ(m.kernel.malloc_usable_size(block), size);
      EXPECT_EQ(m.kernel.malloc_size(asked), size);
      m.kernel.free(block, &m.type);
      EXPECT_EQ(m.fired(), (Fired{{true, size, 0}}));
    }
    below = size;
  }
}

struct Example {
  const char* what;
  std::size_t size;
  std::size_t align;  // 0: malloc; 1: malloc_exec; 2: contigmalloc; 3: malloc_type_allocated
  int zindx;
  std::uint64_t recorded;
};

// REQ: MALLOC9-03. The worked examples of section 2.4.
TEST(Malloc9, WorkedExamples) {
  constexpr Example kRows[] = {
      {"malloc(0)", 0, 0, 0, 16},
      {"malloc(1)", 1, 0, 0, 16},
      {"malloc(16)", 16, 0, 0, 16},
      {"malloc(17)", 17, 0, 1, 32},
      {"malloc(256)", 256, 0, 4, 256},
      {"malloc(257)", 257, 0, 5, 384},
      {"malloc(384)", 384, 0, 5, 384},
      {"malloc(385)", 385, 0, 6, 512},
      {"malloc(4096)", 4096, 0, 9, 4096},
      {"malloc(4097)", 4097, 0, 10, 8192},
      {"malloc(65535)", 65535, 0, 13, 65536},
      {"malloc(65536)", 65536, 0, 13, 65536},
      {"malloc(65537)", 65537, 0, -1, 69632},
      {"malloc(70000)", 70000, 0, -1, 73728},
      {"malloc_exec(100)", 100, 1, -1, 4096},
      {"contigmalloc(5000)", 5000, 2, -1, 8192},
      {"malloc_aligned(100, 64)", 100, 64, 3, 128},
      {"malloc_aligned(300, 16)", 300, 16, 6, 512},
      {"malloc_aligned(10, 4096)", 10, 4096, 9, 4096},
      {"malloc_aligned(0, 32)", 0, 32, 1, 32},
      {"malloc_aligned(70000, 8)", 70000, 8, -1, 131072},
      {"malloc_type_allocated(300)", 300, 3, -1, 300},
  };
  for (const Example& row : kRows) {
    Machine m;
    m.trace(m.type);
    void* block = nullptr;
    switch (row.align) {
      case 0:
        block = m.kernel.malloc(row.size, &m.type, M_WAITOK);
        break;
      case 1:
        block = m.kernel.malloc_exec(row.size, &m.type, M_WAITOK);
        break;
      case 2:
        block = m.kernel.contigmalloc(row.size, &m.type, M_WAITOK);
        break;
      case 3:
        m.kernel.malloc_type_allocated(&m.type, row.size);
        break;
      default:
        block = m.kernel.malloc_aligned(row.size, row.align, &m.type, M_WAITOK);
    }
    EXPECT_EQ(m.fired(), (Fired{{false, row.recorded, row.zindx}})) << row.what;
    EXPECT_EQ(m.stats().memalloced, row.recorded) << row.what;
    EXPECT_EQ(m.stats().numallocs, 1u) << row.what;
    EXPECT_EQ(m.stats().size_mask,
              row.zindx < 0 ? 0u : std::uint64_t{1} << static_cast<unsigned>(row.zindx))
        << row.what;
    if (row.align == 3)
      m.kernel.malloc_type_freed(&m.type, row.size);
    else
      m.kernel.free(block, &m.type);
    EXPECT_EQ(m.fired(), (Fired{{true, row.recorded, 0}})) << row.what;
    EXPECT_EQ(m.stats().memfreed, row.recorded) << row.what;
  }
}

// REQ: MALLOC9-04. vm.kmem_zmax: forced on small machines, reset when out of range, honoured as
// given in between.
TEST(Malloc9, KmemZmax) {
  struct Row {
    std::uint64_t mem;
    std::optional<std::int64_t> tunable;
    std::uint64_t zmax;
  };
  const Row rows[] = {
      {128ull << 20, {}, 4096}, {(128ull << 20) + 4096, {}, 65536}, {1ull << 30, {}, 65536},
      {1ull << 30, 4096, 4096}, {1ull << 30, 4095, 65536},          {1ull << 30, 65537, 65536},
      {1ull << 30, 5000, 5000}, {128ull << 20, 8192, 4096},         {1ull << 30, -1, 65536},
  };
  for (const Row& row : rows) {
    KernelConfig config = small_config(1, row.mem);
    if (row.tunable) config.tunables = {{"vm.kmem_zmax", std::to_string(*row.tunable)}};
    Machine m(config);
    EXPECT_EQ(m.kernel.kmem_zmax(), row.zmax);
    m.trace(m.type);
    m.kernel.free(m.kernel.malloc(row.zmax, &m.type, M_WAITOK), &m.type);
    EXPECT_NE(m.fired().at(0).zindx, -1) << row.zmax;
    m.kernel.free(m.kernel.malloc(row.zmax + 1, &m.type, M_WAITOK), &m.type);
    EXPECT_EQ(m.fired().at(0).zindx, -1) << row.zmax;
    EXPECT_EQ(m.kernel.zones().size(), 29u);  // all classes exist regardless
  }
}

// REQ: MALLOC9-05. Vector 14.
TEST(Malloc9, SizeAbovePageIsLarge_OnSmallMachine) {
  Machine m(small_config(1, 32768ull * 4096));
  m.trace(m.type);
  m.kernel.malloc(4097, &m.type, M_WAITOK);
  EXPECT_EQ(m.fired(), (Fired{{false, 8192, -1}}));
}

// REQ: MALLOC9-06. Vector 1: the first malloc(16) of a machine.
TEST(Malloc9, FirstAllocation) {
  Machine m;
  m.trace(m.type);
  void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}}));
  const ZoneStats zone = m.zone("malloc-16");
  EXPECT_EQ(zone.keg_pages, 2u);
  EXPECT_EQ(zone.keg_free_items, 250u);
  ASSERT_EQ(zone.cpus.size(), 1u);
  EXPECT_EQ(zone.cpus[0].items, 253u);
  EXPECT_EQ(zone.used, 1u);
  EXPECT_EQ(zone.free, 503u);
  EXPECT_EQ(zone.requests, 1u);
  EXPECT_EQ(m.zone("256 Bucket").used, 1u);
  // The second slab's item 1; its item 0 is next, then the first slab from its end.
  const std::uint64_t second = m.kernel.addresses().to_simulated(p) - 16;
  EXPECT_EQ(second % 4096, 0u);
  void* q = m.kernel.malloc(16, &m.type, M_WAITOK);
  EXPECT_EQ(m.kernel.addresses().to_simulated(q), second);
  void* r = m.kernel.malloc(16, &m.type, M_WAITOK);
  EXPECT_EQ(m.kernel.addresses().to_simulated(r) % 4096, 251u * 16);
  void* s = m.kernel.malloc(16, &m.type, M_WAITOK);
  EXPECT_EQ(static_cast<std::byte*>(r) - static_cast<std::byte*>(s), 16);
}

// REQ: MALLOC9-07. Vector 2.
TEST(Malloc9, FreedBlockComesNext) {
  Machine m;
  m.trace(m.type);
  void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {true, 16, 0}}));
  EXPECT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), p);
}

// REQ: MALLOC9-08. Vector 3.
TEST(Malloc9, SecondFillTakesAThirdSlab) {
  Machine m;
  std::set<std::uint64_t> pages;
  for (int i = 0; i < 254; ++i) m.kernel.malloc(16, &m.type, M_WAITOK);
  EXPECT_EQ(m.zone("malloc-16").keg_pages, 2u);
  EXPECT_EQ(m.zone("malloc-16").free, 250u);
  m.kernel.malloc(16, &m.type, M_WAITOK);
  const ZoneStats zone = m.zone("malloc-16");
  EXPECT_EQ(zone.keg_pages, 3u);
  EXPECT_EQ(zone.keg_free_items, 252u - 4);
  EXPECT_EQ(zone.cpus.at(0).items, 253u);
  EXPECT_EQ(zone.used, 255u);
}

// REQ: MALLOC9-09. Vectors 4 and 5: when realloc moves.
TEST(Malloc9, ReallocMovesAtHalf) {
  Machine m;
  m.trace(m.type);
  void* p = m.kernel.malloc(100, &m.type, M_WAITOK);
  m.fired();
  EXPECT_EQ(m.kernel.realloc(p, 128, &m.type, M_WAITOK), p);
  EXPECT_EQ(m.kernel.realloc(p, 65, &m.type, M_WAITOK), p);
  EXPECT_EQ(m.fired(), Fired{});
  std::memset(p, 'x', 64);
  void* q = m.kernel.realloc(p, 64, &m.type, M_WAITOK);
  EXPECT_NE(q, p);
  EXPECT_EQ(std::string(static_cast<char*>(q), 64), std::string(64, 'x'));
  EXPECT_EQ(m.fired(), (Fired{{false, 64, 2}, {true, 128, 0}}));
  void* r = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.fired();
  EXPECT_NE(m.kernel.realloc(r, 8, &m.type, M_WAITOK), r);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {true, 16, 0}}));
  void* s = m.kernel.realloc(nullptr, 10, &m.type, M_WAITOK);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}}));
  EXPECT_NE(m.kernel.realloc(s, 0, &m.type, M_WAITOK), nullptr);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {true, 16, 0}}));
}

// REQ: MALLOC9-10. Vector 6: a failed small allocation fires with size 0, sets its bit, and counts
// twice in UMA, or once where no bucket can be had.
TEST(Malloc9, FailedSmallAllocation) {
  for (const bool bucket_at_hand : {true, false}) {
    Machine m(small_config(1, 8 << 20));
    malloc_type& other = m.kernel.define_type("M_O", "other");
    // malloc-64 and malloc-32 take their buckets from another zone than malloc-128 does.
    if (bucket_at_hand) {
      // A bucket of malloc-128's size lies ready: two fills, one bucket given back.
      std::vector<void*> blocks;
      for (int i = 0; i < 127; ++i) blocks.push_back(m.kernel.malloc(128, &other, M_NOWAIT));
    }
    m.exhaust();
    while (m.kernel.malloc(100, &other, M_NOWAIT) != nullptr) {
    }
    const std::uint64_t fails = m.zone("malloc-128").fail;
    const std::uint64_t buckets = m.zone("128 Bucket").free;
    m.trace(m.type);
    EXPECT_EQ(m.kernel.malloc(100, &m.type, M_NOWAIT), nullptr);
    EXPECT_EQ(m.fired(), (Fired{{false, 0, 3}}));
    EXPECT_EQ(m.stats().size_mask, 8u);
    EXPECT_EQ(m.stats().numallocs, 0u);
    EXPECT_EQ(m.zone("malloc-128").fail - fails, buckets > 0 ? 2u : 1u);
    EXPECT_EQ(buckets > 0, bucket_at_hand);
  }
}

// REQ: MALLOC9-11. Vector 7.
TEST(Malloc9, FailedLargeAllocationLeavesNoTrace) {
  Machine m(small_config(1, 8 << 20));
  m.exhaust();
  m.trace(m.type);
  EXPECT_EQ(m.kernel.malloc(70000, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.kernel.contigmalloc(70000, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.fired(), Fired{});
  EXPECT_EQ(m.stats().numallocs + m.stats().memalloced + m.stats().size_mask, 0u);
}

// REQ: MALLOC9-12. Vector 8; large blocks do move the total.
TEST(Malloc9, ContigIsOutsideTheKmemTotal) {
  Machine m;
  m.trace(m.type);
  const std::uint64_t total = m.kernel.uma_kmem_total();
  void* p = m.kernel.contigmalloc(5000, &m.type, M_WAITOK);
  EXPECT_EQ(m.kernel.uma_kmem_total(), total);
  EXPECT_EQ(m.kernel.malloc_usable_size(p), 8192u);
  m.kernel.contigfree(p, 1, &m.type);
  EXPECT_EQ(m.fired(), (Fired{{false, 8192, -1}, {true, 8192, 0}}));
  EXPECT_EQ(m.kernel.uma_kmem_total(), total);
  void* q = m.kernel.malloc(70000, &m.type, M_WAITOK);
  EXPECT_EQ(m.kernel.uma_kmem_total(), total + 73728);
  m.kernel.free(q, &m.type);
  EXPECT_EQ(m.kernel.uma_kmem_total(), total);
}

// REQ: MALLOC9-13. Vector 9: the leak sentence; an over-freed type prints nothing.
TEST(Malloc9, UninitPrintsTheLeak) {
  Machine m;
  for (int i = 0; i < 3; ++i) m.kernel.malloc(16, &m.type, M_WAITOK);
  malloc_type& even = m.kernel.define_type("M_E", "even");
  malloc_type& negative = m.kernel.define_type("M_N", "negative");
  m.kernel.free(m.kernel.malloc(16, &even, M_WAITOK), &negative);
  m.kernel.malloc_uninit(&negative);
  EXPECT_EQ(m.console, "");
  m.kernel.malloc_uninit(&m.type);
  EXPECT_EQ(m.console,
            "Warning: memory type T leaked memory on destroy (3 allocations, 48 bytes leaked).\n");
  m.console.clear();
  m.kernel.malloc_uninit(&even);
  EXPECT_EQ(m.console,
            "Warning: memory type even leaked memory on destroy (1 allocations, 16 "
            "bytes leaked).\n");
}

// REQ: MALLOC9-14. Vector 11, the allocator's half: two types with one probe name have slots of
// their own, so only the one whose slots are set fires.
TEST(Malloc9, OnlyTheTypeWithIdsFires) {
  Machine m;
  malloc_type& spaced = m.kernel.define_type("M_A", "a b");
  malloc_type& underscored = m.kernel.define_type("M_B", "a_b");
  m.trace(underscored);
  m.kernel.free(m.kernel.malloc(10, &spaced, M_WAITOK), &spaced);
  EXPECT_EQ(m.fired(), Fired{});
  m.kernel.free(m.kernel.malloc(10, &underscored, M_WAITOK), &underscored);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {true, 16, 0}}));
}

// REQ: MALLOC9-15. The enabled flag comes before the ids, and each id has its own event.
TEST(Malloc9, FiresOnlyWhenEnabled) {
  Machine m;
  m.trace(m.type);
  m.type.ks_mti.mti_probes[DTMALLOC_PROBE_FREE] = 0;
  m.kernel.free(m.kernel.malloc(10, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}}));
  m.kernel.set_malloc_probes_enabled(false);
  m.kernel.free(m.kernel.malloc(10, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(m.fired(), Fired{});
}

// REQ: MALLOC9-16. args[2] shows the values after the update, and points at this CPU's line.
TEST(Malloc9, HookSeesUpdatedStatistics) {
  Machine m(small_config(2));
  m.kernel.cpus().bind(1);
  static std::uint64_t seen_allocs, seen_frees;
  static const void* seen_line;
  m.kernel.set_malloc_probe([](std::uint32_t id, std::uintptr_t, std::uintptr_t,
                               std::uintptr_t stats, std::uintptr_t, std::uintptr_t) {
    const auto* line = reinterpret_cast<const malloc_type_stats*>(stats);
    seen_line = line;
    (id == 1 ? seen_allocs : seen_frees) = id == 1 ? line->mts_numallocs : line->mts_numfrees;
  });
  m.kernel.set_malloc_probes_enabled(true);
  m.type.ks_mti.mti_probes[0] = 1;
  m.type.ks_mti.mti_probes[1] = 2;
  m.kernel.free(m.kernel.malloc(10, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(seen_allocs, 1u);
  EXPECT_EQ(seen_frees, 1u);
  EXPECT_EQ(seen_line,
            curcpu->stats_base + reinterpret_cast<std::uintptr_t>(m.type.ks_mti.mti_stats));
}

// REQ: MALLOC9-17. free(NULL) and realloc in place do nothing that can be seen.
TEST(Malloc9, FreeOfNullIsNothing) {
  Machine m;
  m.trace(m.type);
  m.kernel.free(nullptr, &m.type);
  m.kernel.zfree(nullptr, &m.type);
  EXPECT_EQ(m.kernel.malloc_usable_size(nullptr), 0u);
  EXPECT_EQ(m.fired(), Fired{});
  EXPECT_EQ(m.stats().numfrees, 0u);
}

// REQ: MALLOC9-18. M_ZERO of a run-time size clears the whole class; zfree clears the whole block.
TEST(Malloc9, ZeroingCoversTheClass) {
  Machine m;
  auto* p = static_cast<unsigned char*>(m.kernel.malloc(100, &m.type, M_WAITOK));
  std::memset(p, 0xee, 128);
  m.kernel.free(p, &m.type);
  auto* q = static_cast<unsigned char*>(m.kernel.malloc(100, &m.type, M_WAITOK | M_ZERO));
  ASSERT_EQ(q, p);
  for (int i = 0; i < 128; ++i) ASSERT_EQ(q[i], 0) << i;
  std::memset(p, 0xee, 128);
  m.kernel.zfree(p, &m.type);
  for (int i = 0; i < 128; ++i) ASSERT_EQ(p[i], 0) << i;
  auto* large = static_cast<unsigned char*>(m.kernel.malloc(70000, &m.type, M_WAITOK));
  std::memset(large, 0xee, 73728);
  m.kernel.free(large, &m.type);
  large = static_cast<unsigned char*>(m.kernel.malloc(70000, &m.type, M_WAITOK | M_ZERO));
  for (int i = 0; i < 73728; ++i) ASSERT_EQ(large[i], 0) << i;
}

// REQ: MALLOC9-19. The type passed to free() is not compared with the type at malloc().
TEST(Malloc9, FreeUnderAnotherTypeIsSilent) {
  Machine m;
  malloc_type& other = m.kernel.define_type("M_O", "other");
  m.kernel.free(m.kernel.malloc(100, &m.type, M_WAITOK), &other);
  EXPECT_EQ(m.stats().numallocs, 1u);
  EXPECT_EQ(m.stats().numfrees, 0u);
  EXPECT_EQ(m.kernel.type_stats(other).memfreed, 128u);
  EXPECT_EQ(m.console, "");
}

// REQ: MALLOC9-20. Frees are counted on the CPU that frees; only sums mean anything.
TEST(Malloc9, StatisticsArePerCpu) {
  Machine m(small_config(2));
  m.kernel.cpus().bind(0);
  void* p = m.kernel.malloc(100, &m.type, M_WAITOK);
  m.kernel.cpus().bind(1);
  m.kernel.free(p, &m.type);
  auto line = [&](int id) {
    return reinterpret_cast<const malloc_type_stats*>(
        m.kernel.cpus().cpu(id).stats_base +
        reinterpret_cast<std::uintptr_t>(m.type.ks_mti.mti_stats));
  };
  EXPECT_EQ(line(0)->mts_numallocs, 1u);
  EXPECT_EQ(line(0)->mts_numfrees, 0u);
  EXPECT_EQ(line(1)->mts_numfrees, 1u);
  EXPECT_EQ(line(1)->mts_memfreed, 128u);
  EXPECT_EQ(line(1)->mts_size, 0u);
  EXPECT_EQ(m.stats().memalloced, m.stats().memfreed);
}

// REQ: MALLOC9-21. Manual accounting: size 0 allocates nothing, but frees once.
TEST(Malloc9, ManualAccounting) {
  Machine m;
  m.trace(m.type);
  m.kernel.malloc_type_allocated(&m.type, 0);
  EXPECT_EQ(m.fired(), Fired{});
  m.kernel.malloc_type_freed(&m.type, 0);
  EXPECT_EQ(m.fired(), (Fired{{true, 0, 0}}));
  EXPECT_EQ(m.stats().numfrees, 1u);
  EXPECT_EQ(m.stats().numallocs, 0u);
}

// REQ: MALLOC9-22. malloc_type_list() and malloc_desc2type(): newest first; the list's own array
// counts against temp.
TEST(Malloc9, ListsNewestFirst) {
  Machine m;
  malloc_type& twin = m.kernel.define_type("M_T2", "T");
  std::vector<std::string> names;
  malloc_type& temp = *m.kernel.type("temp");
  m.kernel.malloc_type_list([&](malloc_type* mtp) { names.emplace_back(mtp->ks_shortdesc); });
  EXPECT_EQ(names,
            (std::vector<std::string>{"T", "T", "UMAHash", "UMA", "temp", "devbuf", "cache"}));
  EXPECT_EQ(m.kernel.type("T"), &twin);
  EXPECT_EQ(m.kernel.type("nosuch"), nullptr);
  const TypeStats stats = m.kernel.type_stats(temp);
  EXPECT_EQ(stats.numallocs, 1u);
  EXPECT_EQ(stats.numfrees, 1u);
  EXPECT_EQ(stats.memalloced, 64u);
}

// REQ: MALLOC9-23. Boot makes no malloc(9) call and takes no page.
TEST(Malloc9, BootIsFreeOfCharge) {
  Machine m(small_config(4, 8ull << 30));
  EXPECT_EQ(m.kernel.free_pages(), (8ull << 30) / 4096);
  for (const malloc_type* mtp : m.kernel.types()) {
    const TypeStats stats = m.kernel.type_stats(*mtp);
    EXPECT_EQ(stats.numallocs + stats.numfrees + stats.size_mask, 0u) << mtp->ks_shortdesc;
  }
  for (const ZoneStats& zone : m.kernel.zones()) EXPECT_EQ(zone.requests, 0u) << zone.name;
}

// REQ: MALLOC9-24. mallocarray: overflow panics in every kernel, whatever the flags.
TEST(Malloc9, MallocarrayPanicsOnOverflow) {
  Machine m;
  EXPECT_NE(m.kernel.mallocarray(8, 64, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.stats().memalloced, 512u);
  EXPECT_NE(m.kernel.mallocarray(0, SIZE_MAX, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(panic_of([&] {
              m.kernel.mallocarray(std::size_t{1} << 32, std::size_t{1} << 32, &m.type, M_NOWAIT);
            }),
            "mallocarray: 4294967296 * 4294967296 overflowed");
}

// REQ: MALLOC9-25. What was never allocated: both functions name themselves and the page.
TEST(Malloc9, FreeOfUnknownAddressPanics) {
  for (const bool zero : {false, true}) {
    Machine m;
    auto* p = static_cast<std::byte*>(m.kernel.malloc(70000, &m.type, M_WAITOK));
    m.kernel.free(p, &m.type);
    const std::string text = panic_of([&] {
      if (zero)
        m.kernel.zfree(p + 4097, &m.type);
      else
        m.kernel.free(p + 4097, &m.type);
    });
    EXPECT_EQ(text, std::string("_free(") + (zero ? "1" : "0") +
                        "): address 0xfffff80000001001(0xfffff80000001000) has not been allocated");
  }
  Machine m;
  auto* p = static_cast<std::byte*>(m.kernel.malloc(70000, &m.type, M_WAITOK));
  EXPECT_EQ(panic_of([&] { m.kernel.malloc_usable_size(p + 4096); }),
            "malloc_usable_size: address 0xfffff80000001000(0xfffff80000001000) is not allocated");
}

// REQ: MALLOC9-45. Only slabs of zones with VTOSLAB are known by their pages.
TEST(Malloc9, OnlyPagesTellWhatIsFreed) {
  Machine m;
  uma_zone* small =
      uma_zcreate(m.kernel.vm(), "small", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  void* item = uma_zalloc(small, kM_WAITOK);
  EXPECT_THAT(panic_of([&] { m.kernel.free(item, &m.type); }),
              testing::HasSubstr("has not been allocated"));
  Machine n;
  uma_zone* page = uma_zcreate(n.kernel.vm(), "page", 4096, nullptr, nullptr, nullptr, nullptr,
                               UMA_ALIGN_PTR, 0);
  ASSERT_NE(page->uz_flags & UMA_ZFLAG_VTOSLAB, 0u);
  n.kernel.free(uma_zalloc(page, kM_WAITOK), &n.type);
  EXPECT_EQ(n.kernel.type_stats(n.type).memfreed, 4096u);
}

// REQ: MALLOC9-45. A bucket in use must not get into the hands of a caller.
TEST(Malloc9, BucketsAreNotFreed) {
  for (const bool resize : {false, true}) {
    Machine m;
    m.kernel.malloc(16, &m.type, M_WAITOK);
    Vm& vm = m.kernel.vm();
    std::byte* bucket = nullptr;
    for (std::uint64_t page = 0; bucket == nullptr && page < 64; ++page) {
      const std::uintptr_t word = vm.slab_word(vm.page_address(page));
      if (word != 0 && std::string_view(Kernel::Impl::keg_at(word).uk_name) == "256 Bucket")
        bucket = vm.page_address(page);
    }
    ASSERT_NE(bucket, nullptr);
    EXPECT_THAT(panic_of([&] {
                  if (resize)
                    m.kernel.realloc(bucket, 1, &m.type, M_WAITOK);
                  else
                    m.kernel.free(bucket, &m.type);
                }),
                testing::HasSubstr("UMA's own, in zone 256 Bucket"));
  }
}

// REQ: MALLOC9-26. After the first panic every call throws it again; reports stay readable.
TEST(Malloc9, PanickedMachineStaysReadable) {
  Machine m;
  m.kernel.malloc(100, &m.type, M_WAITOK);
  const std::string first = panic_of([&] { m.kernel.free(&m, &m.type); });
  EXPECT_NE(first, "");
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(1, &m.type, M_WAITOK); }), first);
  EXPECT_EQ(m.stats().memalloced, 128u);
  EXPECT_EQ(m.zone("malloc-128").used, 1u);
}

// REQ: MALLOC9-27. INVARIANTS: the assertions on flags, version and context, to the letter.
TEST(Malloc9, InvariantsAssertFlagsAndContext) {
  const MallocFlags none = MallocFlags::from_bits(0);
  const MallocFlags both = MallocFlags::from_bits(kM_NOWAIT | kM_WAITOK);
  const MallocFlags never = MallocFlags::from_bits(kM_NOWAIT | kM_NEVERFREED);
  struct Row {
    const char* text;
    std::function<void(Machine&)> act;
  };
  const Row rows[] = {
      {"malloc: flags must include either M_WAITOK or M_NOWAIT",
       [&](Machine& m) { m.kernel.malloc(1, &m.type, none); }},
      {"malloc: flags may not include both M_WAITOK and M_NOWAIT",
       [&](Machine& m) { m.kernel.malloc(1, &m.type, both); }},
      {"malloc: M_NEVERFREED is for internal use only",
       [&](Machine& m) { m.kernel.malloc(1, &m.type, never); }},
      {"malloc: bad malloc type version",
       [](Machine& m) {
         m.type.ks_version = 1;
         m.kernel.malloc(1, &m.type, M_NOWAIT);
       }},
      {"free: bad malloc type version",
       [](Machine& m) {
         m.type.ks_version = 1;
         m.kernel.free(nullptr, &m.type);
       }},
      {"realloc: bad malloc type version",
       [](Machine& m) {
         m.type.ks_version = 1;
         m.kernel.realloc(nullptr, 1, &m.type, M_NOWAIT);
       }},
      {"malloc(M_WAITOK) in interrupt context",
       [](Machine& m) {
         m.kernel.cpus().bind_any();
         m.kernel.cpus().current_thread().intr_nesting = 1;
         m.kernel.malloc(1, &m.type, M_WAITOK);
       }},
      {"malloc(M_WAITOK) with sleeping prohibited",
       [](Machine& m) {
         m.kernel.cpus().bind_any();
         m.kernel.cpus().current_thread().no_sleeping = 1;
         m.kernel.malloc(1, &m.type, M_WAITOK);
       }},
      {"malloc: called with spinlock or critical section held",
       [](Machine& m) {
         m.kernel.cpus().bind_any();
         const CriticalSection section;
         m.kernel.malloc(1, &m.type, M_NOWAIT);
       }},
      {"free: called with spinlock or critical section held",
       [](Machine& m) {
         m.kernel.cpus().bind_any();
         const CriticalSection section;
         m.kernel.free(nullptr, &m.type);
       }},
      {"M_USE_RESERVE requires M_NOWAIT",
       [](Machine& m) {
         m.kernel.malloc(70000, &m.type, MallocFlags::from_bits(kM_WAITOK | kM_USE_RESERVE));
       }},
      {"malloc_domainset_aligned: wrong align 0x30 size 0xa",
       [](Machine& m) { m.kernel.malloc_aligned(10, 48, &m.type, M_NOWAIT); }},
      {"malloc_domainset_aligned: align 0x2000 (size 0xa) too large",
       [](Machine& m) { m.kernel.malloc_aligned(10, 8192, &m.type, M_NOWAIT); }},
  };
  for (const Row& row : rows) {
    KernelConfig config = small_config();
    config.invariants = true;
    Machine m(config);
    EXPECT_EQ(panic_of([&] { row.act(m); }), row.text);
  }
}

// REQ: MALLOC9-28. Without INVARIANTS the same calls pass unseen.
TEST(Malloc9, ProductionKernelAssertsNothing) {
  Machine m;
  EXPECT_NE(m.kernel.malloc(1, &m.type, MallocFlags::from_bits(0)), nullptr);
  EXPECT_NE(m.kernel.malloc(1, &m.type, MallocFlags::from_bits(kM_NOWAIT | kM_WAITOK)), nullptr);
  m.kernel.cpus().current_thread().intr_nesting = 1;
  EXPECT_NE(m.kernel.malloc(1, &m.type, M_WAITOK), nullptr);
  const CriticalSection section;
  void* p = m.kernel.malloc(1, &m.type, M_NOWAIT);
  EXPECT_NE(p, nullptr);
  m.kernel.free(p, &m.type);
}

// REQ: MALLOC9-29. realloc of contiguous memory: NULL in production.
TEST(Malloc9, ReallocRefusesContiguousMemory) {
  Machine m;
  void* p = m.kernel.contigmalloc(5000, &m.type, M_WAITOK);
  EXPECT_EQ(m.kernel.realloc(p, 5000, &m.type, M_WAITOK), nullptr);
  EXPECT_EQ(m.stats().numfrees, 0u);
  EXPECT_EQ(m.kernel.reallocf(p, 5000, &m.type, M_WAITOK), nullptr);
  EXPECT_EQ(m.stats().numfrees, 1u);
}

// REQ: MALLOC9-30. Registration: a wrong version panics in every kernel; removal of a stranger too.
TEST(Malloc9, RegistrationChecks) {
  Machine m;
  malloc_type old = {nullptr, 2024042901, "old", {}};
  EXPECT_EQ(panic_of([&] { m.kernel.malloc_init(&old); }),
            "malloc_init: type old with unsupported version 2024042901");
  Machine n;
  malloc_type stranger = {nullptr, M_VERSION, "stranger", {}};
  EXPECT_EQ(panic_of([&] { n.kernel.malloc_uninit(&stranger); }),
            "malloc_uninit: type 'stranger' not found");
  Machine o;
  EXPECT_EQ(panic_of([&] { o.kernel.malloc(1, &stranger, M_NOWAIT); }),
            "malloc: type stranger is not registered");
}

// REQ: MALLOC9-31. contigmalloc honours alignment, boundary and the physical range.
TEST(Malloc9, ContigmallocHonoursItsConstraints) {
  Machine m(small_config(1, 64 << 20));
  auto offset = [&](void* p) { return m.kernel.addresses().to_simulated(p) - AddressMap::kArena; };
  m.kernel.malloc(4096, &m.type, M_WAITOK);
  void* p = m.kernel.contigmalloc(4096, &m.type, M_WAITOK, 0, ~0ull, 65536, 0);
  EXPECT_EQ(offset(p) % 65536, 0u);
  void* q = m.kernel.contigmalloc(3 * 4096, &m.type, M_WAITOK, 0, ~0ull, 4096, 16384);
  EXPECT_EQ(offset(q) / 16384, (offset(q) + 3 * 4096 - 1) / 16384);
  void* r = m.kernel.contigmalloc(4096, &m.type, M_WAITOK, 1 << 20, (2 << 20) - 1, 4096, 0);
  EXPECT_GE(offset(r), 1u << 20);
  EXPECT_LT(offset(r), 2u << 20);
  EXPECT_EQ(m.kernel.contigmalloc(2 << 20, &m.type, M_NOWAIT, 1 << 20, (2 << 20) - 1), nullptr);
}

// REQ: MALLOC9-32. Page classes: M_USE_RESERVE goes down to the last page, others leave two.
TEST(Malloc9, ReserveIsForUseReserve) {
  Machine m(small_config(1, 8 << 20));
  malloc_type& hog = m.kernel.define_type("M_HOG", "hog");
  while (m.kernel.contigmalloc(4096, &hog, M_NOWAIT) != nullptr) {
  }
  EXPECT_EQ(m.kernel.free_pages(), 2u);
  EXPECT_EQ(m.kernel.malloc(70000, &m.type, M_NOWAIT), nullptr);
  EXPECT_NE(m.kernel.malloc(4096, &m.type, MallocFlags::from_bits(kM_NOWAIT | kM_USE_RESERVE)),
            nullptr);
  EXPECT_LT(m.kernel.free_pages(), 2u);
}

// REQ: MALLOC9-33. M_WAITOK with nobody who could free: a deadlock that names the sleeper.
TEST(Malloc9, DeadlockNamesTheSleeper) {
  Machine m(small_config(1, 8 << 20));
  m.exhaust();
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(70000, &m.type, M_WAITOK); }),
            "deadlock: kernel (tid 100000): malloc 70000 M_T M_WAITOK waits for free pages");
}

// REQ: MALLOC9-34. Releases are rows of data.
TEST(Malloc9, ReleasesDiffer) {
  struct Row {
    int release;
    std::size_t classes;
    std::size_t of_300;
    const char* zone_of_16;
    std::uint64_t zmax;
  };
  for (const Row& row :
       {Row{8, 9, 512, "16", 4096}, Row{12, 13, 512, "16", 65536},
        Row{14, 14, 384, "malloc-16", 65536}, Row{16, 14, 384, "malloc-16", 65536}}) {
    KernelConfig config = small_config();
    config.release = row.release;
    Machine m(config);
    EXPECT_EQ(m.kernel.classes().size(), row.classes);
    EXPECT_EQ(m.kernel.malloc_size(300), row.of_300);
    EXPECT_EQ(m.kernel.kmem_zmax(), row.zmax);
    m.kernel.malloc(1, &m.type, M_WAITOK);
    EXPECT_EQ(m.zone(row.zone_of_16).used, 1u);
  }
}

// REQ: MALLOC9-35. The C objects belong to the default kernel: the one that booted without another.
TEST(Malloc9, StaticTypesBelongToTheDefaultKernel) {
  {
    Machine first;
    EXPECT_EQ(Kernel::default_kernel(), &first.kernel);
    EXPECT_EQ(first.kernel.type("temp"), M_TEMP);
    EXPECT_EQ(first.kernel.type_by_symbol("M_DEVBUF"), M_DEVBUF);
    KernelConfig config = small_config();
    config.invariants = true;
    Machine second(config);
    EXPECT_NE(second.kernel.type("temp"), M_TEMP);
    EXPECT_EQ(panic_of([&] { second.kernel.malloc(1, M_TEMP, M_NOWAIT); }),
              "malloc: type temp belongs to another kernel");
    void* p = first.kernel.malloc(1, M_TEMP, M_NOWAIT);
    EXPECT_NE(p, nullptr);
  }
  EXPECT_EQ(Kernel::default_kernel(), nullptr);
  EXPECT_EQ(M_TEMP->ks_mti.mti_stats, nullptr);
  static malloc_type module_type[1] = {{nullptr, M_VERSION, "module", {}}};
  kern_static_type_register(module_type);
  {
    Machine next;
    EXPECT_EQ(next.kernel.type("module"), module_type);
    EXPECT_EQ(next.kernel.types().at(0), M_CACHE);
    EXPECT_EQ(next.kernel.types().at(5), module_type);
  }
  kern_static_type_unregister(module_type);
}

// REQ: MALLOC9-36. A type that is unregistered keeps its object, unreadable; using it is a panic.
TEST(Malloc9, UnregisteredTypeGoesToTheGraveyard) {
  Machine m;
  m.kernel.malloc(16, &m.type, M_WAITOK);
  AddressMap& map = m.kernel.addresses();
  const std::uint64_t object = map.to_simulated(&m.type);
  const std::uint64_t name = map.to_simulated(m.type.ks_shortdesc);
  EXPECT_NE(map.to_host(object, sizeof m.type), nullptr);
  m.kernel.malloc_uninit(&m.type);
  EXPECT_EQ(map.to_simulated(&m.type), object);
  EXPECT_EQ(map.to_host(object, 8), nullptr);
  EXPECT_EQ(map.to_host(name, 1), nullptr);
  EXPECT_EQ(m.kernel.type("T"), nullptr);
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(16, &m.type, M_WAITOK); }),
            "malloc: type T is not registered");
}

// REQ: MALLOC9-37. A type comes back with a new, zeroed line and at the end of the order.
TEST(Malloc9, TypeCanBeRegisteredAgain) {
  Machine m;
  m.kernel.malloc(16, &m.type, M_WAITOK);
  m.kernel.malloc_uninit(&m.type);
  malloc_type& other = m.kernel.define_type("M_O", "other");
  m.kernel.malloc_init(&m.type);
  EXPECT_EQ(m.stats().numallocs, 0u);
  EXPECT_EQ(m.kernel.types().back(), &m.type);
  EXPECT_NE(m.type.ks_mti.mti_stats, other.ks_mti.mti_stats);
  EXPECT_NE(m.kernel.addresses().to_host(m.kernel.addresses().to_simulated(&m.type), 8), nullptr);
}

}  // namespace
}  // namespace dtmalloc
