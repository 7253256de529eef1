// SPDX-License-Identifier: BSD-2-Clause
// Where the manual pages of malloc and contigmalloc say something else than the code does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

extern "C" {
malloc_type* driver_type(void);
void* driver_zeroed_constant(void);
void* driver_zeroed(std::size_t size);
void driver_free(void* block);
}

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
      {0, 4096, 0, "not modelled: contigmalloc: size 0 alignment 0x1000 boundary 0"},
      {4096, 3, 0, "not modelled: contigmalloc: size 0x1000 alignment 0x3 boundary 0"},
      {4096, 4096, 12288,
       "not modelled: contigmalloc: size 0x1000 alignment 0x1000 boundary 0x3000"}};
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

// The driver is loaded with the program, as its MALLOC_DEFINE says; the tests find it unloaded.
class Driver : public ::testing::Environment {
 public:
  void SetUp() override {
    was_loaded = loaded();
    kern_static_type_unregister(driver_type());
  }
  static bool loaded() {
    const std::vector<malloc_type*>& types = default_kernel_state().static_types;
    return std::count(types.begin(), types.end(), driver_type()) == 1;
  }
  static inline bool was_loaded = false;
};
[[maybe_unused]] const auto* const driver = ::testing::AddGlobalTestEnvironment(new Driver);

struct LoadedDriver {
  LoadedDriver() { kern_static_type_register(driver_type()); }
  ~LoadedDriver() { kern_static_type_unregister(driver_type()); }
};

// REQ: MANUAL-06, MANUAL-07
TEST(Manual, MallocDefine) {
  EXPECT_TRUE(Driver::was_loaded);
  EXPECT_FALSE(Driver::loaded());
  const LoadedDriver loaded;
  malloc_type* type = driver_type();
  EXPECT_EQ(type->ks_version, 2024073001u);
  EXPECT_STREQ(type->ks_shortdesc, "driver");
  EXPECT_EQ(type->ks_next, nullptr);
  EXPECT_EQ(type->ks_mti.mti_stats, nullptr);
  Machine m;
  EXPECT_EQ(m.kernel.type("driver"), type);
  EXPECT_EQ(m.kernel.types().at(5), type);  // behind the kernel's own
  m.kernel.malloc_uninit(type);
  EXPECT_EQ(m.kernel.type("driver"), nullptr);
  m.kernel.malloc_init(type);
  EXPECT_EQ(m.kernel.types().back(), type);
  malloc_type old{nullptr, 2024042901, "old", {}};
  EXPECT_EQ(panic_of([&] { m.kernel.malloc_init(&old); }),
            "malloc_init: type old with unsupported version 2024042901");
}

// REQ: MANUAL-08
TEST(Manual, ConstantsOfMalloc) {
  EXPECT_EQ(KMEM_ZSHIFT, 4);
  EXPECT_EQ(KMEM_ZBASE, 16u);
  EXPECT_EQ(KMEM_ZMASK, 15u);
  EXPECT_EQ(KMEM_ZMAX, 65536u);
  EXPECT_EQ(KMEM_ZSIZE, 4096u);
  Machine m;
  const auto& table = m.kernel.impl().kmemsize;
  ASSERT_EQ(table.size(), 4097u);
  const std::vector<std::uint32_t>& classes = m.kernel.classes();
  ASSERT_EQ(classes.size(), 14u);
  for (std::size_t slot = 0; slot <= KMEM_ZSIZE; ++slot) {
    const std::size_t zindx = table[slot];
    ASSERT_GE(classes[zindx], slot * 16) << slot;
    ASSERT_TRUE(zindx == 0 || classes[zindx - 1] < slot * 16) << slot;
  }
}

// REQ: MANUAL-09
TEST(Manual, AccountingFollowsTheZone) {
  static Machine* machine;
  static std::vector<std::uint64_t> used, allocs, frees;
  Machine m;
  machine = &m;
  used = allocs = frees = {};
  m.kernel.set_malloc_probe([](std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                               std::uintptr_t, std::uintptr_t) {
    const uma_cache& cache = machine->kernel.impl().kern_cpu(0).slots[1 + 9];  // of malloc-4096
    used.push_back(cache.uc_allocs - cache.frees());
    allocs.push_back(machine->stats().numallocs);
    frees.push_back(machine->stats().numfrees);
  });
  m.kernel.set_malloc_probes_enabled(true);
  m.type.ks_mti.mti_probes[0] = 1;
  m.type.ks_mti.mti_probes[1] = 2;
  m.kernel.free(m.kernel.malloc(4096, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(used, (std::vector<std::uint64_t>{1, 0}));
  EXPECT_EQ(allocs, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(frees, (std::vector<std::uint64_t>{0, 1}));
}

// REQ: MANUAL-10
TEST(Manual, ConstantsOfUma) {
  const std::pair<std::uint64_t, std::uint64_t> rows[] = {{UMA_SLAB_SIZE, 4096},
                                                          {UMA_MAX_WASTE, 10},
                                                          {SLAB_MAX_SETSIZE, 512},
                                                          {BUCKET_MAX, 254},
                                                          {UMA_TIMEOUT, 20'000'000'000},
                                                          {UMA_RECLAIM_DRAIN, 1},
                                                          {UMA_RECLAIM_DRAIN_CPU, 2},
                                                          {UMA_RECLAIM_TRIM, 3},
                                                          {UMA_ZONE_UNMANAGED, 0x1},
                                                          {UMA_ZONE_ZINIT, 0x2},
                                                          {UMA_ZONE_CONTIG, 0x4},
                                                          {UMA_ZONE_NOTOUCH, 0x8},
                                                          {UMA_ZONE_MALLOC, 0x10},
                                                          {UMA_ZONE_NOFREE, 0x20},
                                                          {UMA_ZONE_MTXCLASS, 0x40},
                                                          {UMA_ZONE_VM, 0x80},
                                                          {UMA_ZONE_NOTPAGE, 0x100},
                                                          {UMA_ZONE_SECONDARY, 0x200},
                                                          {UMA_ZONE_NOBUCKET, 0x400},
                                                          {UMA_ZONE_MAXBUCKET, 0x800},
                                                          {UMA_ZONE_CACHESPREAD, 0x2000},
                                                          {UMA_ZONE_NODUMP, 0x4000},
                                                          {UMA_ZONE_PCPU, 0x8000},
                                                          {UMA_ZONE_FIRSTTOUCH, 0x10000},
                                                          {UMA_ZONE_ROUNDROBIN, 0x20000},
                                                          {UMA_ZONE_SMR, 0x40000},
                                                          {UMA_ZONE_NOKASAN, 0x80000},
                                                          {UMA_ZFLAG_OFFPAGE, 0x200000},
                                                          {UMA_ZFLAG_HASH, 0x400000},
                                                          {UMA_ZFLAG_VTOSLAB, 0x800000},
                                                          {UMA_ZFLAG_CTORDTOR, 0x1000000},
                                                          {UMA_ZFLAG_LIMIT, 0x2000000},
                                                          {UMA_ZFLAG_CACHE, 0x4000000},
                                                          {UMA_ZFLAG_BUCKET, 0x10000000},
                                                          {UMA_ZFLAG_INTERNAL, 0x20000000},
                                                          {UMA_ZFLAG_TRASH, 0x40000000}};
  for (const auto& [ours, theirs] : rows) EXPECT_EQ(ours, theirs);
  // Malloc zones: by page to the slab, and first-touch.
  Machine m;
  EXPECT_EQ(m.zone("malloc-16").flags, UMA_ZFLAG_VTOSLAB | UMA_ZONE_FIRSTTOUCH | UMA_ZONE_MALLOC);
}

// REQ: MANUAL-11
TEST(Manual, ZeroWithConstantsLeavesTheTail) {
  const LoadedDriver loaded;
  for (const bool constant : {true, false}) {
    Machine m;
    m.kernel.cpus().bind(0);
    auto* p = static_cast<unsigned char*>(m.kernel.malloc(128, &m.type, M_WAITOK));
    std::memset(p, 0x41, 128);
    m.kernel.free(p, &m.type);
    ASSERT_EQ(constant ? driver_zeroed_constant() : driver_zeroed(100), p);
    for (int i = 0; i < 128; ++i)
      ASSERT_EQ(p[i], constant && i >= 100 ? 0x41 : 0) << i << (constant ? " constant" : "");
    driver_free(p);
  }
}

// REQ: MANUAL-12
TEST(Manual, UndocumentedFunctions) {
  Machine m;
  m.kernel.cpus().bind(0);
  EXPECT_EQ(kern_malloc_size(300), 384u);
  kern_malloc_type_allocated(&m.type, 300);
  kern_malloc_type_freed(&m.type, 200);
  EXPECT_EQ(m.stats().memalloced, 300u);
  EXPECT_EQ(m.stats().memfreed, 200u);
  EXPECT_EQ(kern_malloc_desc2type("T"), &m.type);
  EXPECT_EQ(kern_malloc_desc2type("t"), nullptr);
}

}  // namespace
}  // namespace dtmalloc
