// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) misused: INVARIANTS' checks of items, unregistered types, sizes that no kernel can
// give.
#include <gmock/gmock.h>
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

KernelConfig invariants() {
  KernelConfig config = small_config();
  config.invariants = true;
  return config;
}

std::string hex(Machine& m, const void* host) {
  char text[32];
  std::snprintf(text, sizeof text, "%#lx",
                static_cast<unsigned long>(m.kernel.addresses().to_simulated(host)));
  return text;
}

// REQ: MALLOC9-36. malloc() and free() under a type that was unregistered panic, traced or not, and
// also after a stale probe was enabled and disabled again.
TEST(Malloc9, UnregisteredTypeIsRefused) {
  enum { kUntraced, kTraced, kDisabled, kStale };
  for (const int state : {kUntraced, kTraced, kDisabled, kStale})
    for (const bool frees : {false, true}) {
      Machine m;
      malloc_type& gone = m.kernel.define_type("M_X", "x");
      void* block = m.kernel.malloc(100, &gone, M_WAITOK);
      std::uint32_t* slots = gone.ks_mti.mti_probes;
      if (state == kTraced || state == kDisabled) m.trace(gone);
      m.kernel.malloc_uninit(&gone);
      if (state == kDisabled || state == kStale)
        for (const int slot : {0, 1}) {
          Kernel::set_probe_id(&slots[slot], static_cast<std::uint32_t>(7 + slot));
          EXPECT_EQ(slots[slot], static_cast<std::uint32_t>(7 + slot));
          Kernel::set_probe_id(&slots[slot], 0);
        }
      const std::string text = panic_of([&] {
        if (frees)
          m.kernel.free(block, &gone);
        else
          m.kernel.malloc(100, &gone, M_WAITOK);
      });
      EXPECT_EQ(text, std::string(frees ? "free" : "malloc") + ": type x is not registered")
          << state;
    }
}

// REQ: MALLOC9-46. A free inside the last item of a slab, or inside a large block, writes behind
// its end: into a bucket, which this process needs, it must not.
TEST(Malloc9, WritesBehindABlockSpareUma) {
  enum { kZeroSlab, kStampSlab, kZeroLarge };
  for (const int what : {kZeroSlab, kStampSlab, kZeroLarge}) {
    KernelConfig config = small_config();
    config.invariants = what == kStampSlab;
    Machine m(config);
    Vm& vm = m.kernel.vm();
    const auto is_bucket = [&](std::uint64_t page) {
      const std::uintptr_t word = vm.slab_word(vm.page_address(page));
      return word != 0 && (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR &&
             Kernel::Impl::is_machinery(word);
    };
    // Whole pages, until one of UMA's own comes behind one.
    std::byte* last = nullptr;
    for (int i = 0; i < 5000 && last == nullptr; ++i) {
      auto* p = static_cast<std::byte*>(
          m.kernel.malloc(what == kZeroLarge ? 65537 : 4096, &m.type, M_WAITOK));
      m.kernel.malloc(static_cast<std::size_t>(16 << i % 9), &m.type, M_WAITOK);
      const std::uint64_t end = vm.page_of(p) + (what == kZeroLarge ? 17 : 1);
      if (is_bucket(end)) last = p;
    }
    ASSERT_NE(last, nullptr);
    const std::string text = panic_of([&] {
      if (what == kStampSlab)
        m.kernel.free(last + 8, &m.type);
      else
        m.kernel.zfree(last + 8, &m.type);
    });
    EXPECT_EQ(text.rfind(what == kStampSlab ? "not modelled: free of 0xfffff800"
                                            : "not modelled: zfree of 0xfffff800",
                         0),
              0u)
        << text;
    EXPECT_THAT(text, testing::HasSubstr(" writes over UMA's own memory"));
  }
}

// REQ: MALLOC9-46. Nor behind the memory's end.
TEST(Malloc9, WritesBehindTheMemoryAreAPageFault) {
  Machine m;
  Vm& vm = m.kernel.vm();
  const std::uint64_t last = vm.arena_pages - 1;
  vm.page_slab[last] = kPageSize << SLAB_COOKIE_SHIFT | SLAB_COOKIE_MALLOC_LARGE;
  EXPECT_EQ(panic_of([&] { m.kernel.zfree(vm.page_address(last) + 8, &m.type); }), "page fault");
}

// REQ: MALLOC9-47
TEST(Malloc9, FreeOfNullAsksLittle) {
  for (const bool debug : {false, true}) {
    KernelConfig config = small_config();
    config.invariants = debug;
    Machine m(config);
    malloc_type& gone = m.kernel.define_type("M_X", "x");
    m.kernel.malloc_uninit(&gone);
    m.kernel.free(nullptr, &gone);
    m.kernel.zfree(nullptr, &gone);
    gone.ks_version = 1;
    EXPECT_EQ(panic_of([&] { m.kernel.free(nullptr, &gone); }),
              debug ? "free: bad malloc type version" : "");
  }
}

// REQ: MALLOC9-36. What a user's type was called is not known once it is gone: its object may be.
TEST(Malloc9, JunkCheckDoesNotReadAUsersGoneType) {
  Machine m(invariants());
  auto* const mine = new malloc_type{nullptr, M_VERSION, "mine", {}};
  m.kernel.malloc_init(mine);
  auto* const p = static_cast<std::byte*>(m.kernel.malloc(16, mine, M_WAITOK));
  m.kernel.free(p, mine);
  m.kernel.malloc_uninit(mine);
  mine->ks_shortdesc = nullptr;
  p[0] = std::byte{1};
  const std::string text = panic_of([&] { m.kernel.malloc(16, &m.type, M_WAITOK); });
  delete mine;
  EXPECT_EQ(text.rfind("Memory modified after free " + hex(m, p) + " (16, malloc-16, 0x", 0), 0u)
      << text;
  EXPECT_EQ(m.console, "");
}

// REQ: MALLOC9-37. A type that comes back is as good as new; a stale probe id stays (3.10).
TEST(Malloc9, RegisteredAgainTypeCountsFrees) {
  Machine m;
  m.kernel.malloc_uninit(&m.type);
  m.kernel.malloc_init(&m.type);
  EXPECT_EQ(m.type.ks_mti.mti_probes[0], 0u);
  EXPECT_EQ(m.type.ks_mti.mti_probes[1], 0u);
  m.kernel.free(m.kernel.malloc(100, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(m.stats().numfrees, 1u);
  m.kernel.malloc_uninit(&m.type);
  Kernel::set_probe_id(&m.type.ks_mti.mti_probes[1], 9);
  m.kernel.malloc_init(&m.type);
  EXPECT_EQ(m.type.ks_mti.mti_probes[1], 9u);
}

// REQ: MALLOC9-36. Types that share one string keep it readable until the last is gone.
TEST(Malloc9, SharedNameOutlivesOneType) {
  static const char name[] = "dummynet";
  malloc_type one{nullptr, M_VERSION, name, {}}, two{nullptr, M_VERSION, name, {}};
  Machine m;
  m.kernel.malloc_init(&one);
  m.kernel.malloc_init(&two);
  AddressMap& map = m.kernel.addresses();
  const std::uint64_t at = map.to_simulated(name);
  m.kernel.malloc_uninit(&one);
  EXPECT_EQ(map.to_host(at, sizeof name), name);
  m.kernel.malloc_uninit(&two);
  EXPECT_EQ(map.to_host(at, 1), nullptr);
}

// REQ: MALLOC9-35. A refused registration leaves no trace in the kernel that refused; and without
// INVARIANTS the cold path alone notices the type of another kernel.
TEST(Malloc9, ForeignTypeLeavesNoTrace) {
  Machine first, second;
  EXPECT_EQ(panic_of([&] { second.kernel.malloc_init(M_TEMP); }),
            "malloc_init: type temp belongs to another kernel");
  EXPECT_EQ(second.kernel.symbol(*M_TEMP), "");
  Machine third;
  EXPECT_EQ(panic_of([&] { third.kernel.malloc(1, M_TEMP, M_NOWAIT); }),
            "malloc: type temp belongs to another kernel");
  EXPECT_NE(first.kernel.malloc(1, M_TEMP, M_NOWAIT), nullptr);
}

// REQ: MALLOC9-22. malloc_type_list() is served by the kernel's own temp, and gives its array back
// when the list has grown meanwhile.
TEST(Malloc9, ListFreesItsArrayOnRetry) {
  Machine m;
  malloc_type& other = m.kernel.define_type("M_MINE", "temp");
  malloc_type& temp = *m.kernel.type_by_symbol("M_TEMP");
  static Kernel* kernel;
  static int calls;
  kernel = &m.kernel;
  calls = 0;
  m.kernel.set_malloc_probe([](std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                               std::uintptr_t, std::uintptr_t) {
    if (calls++ == 0) kernel->define_type("M_LATE", "late");
  });
  m.kernel.set_malloc_probes_enabled(true);
  temp.ks_mti.mti_probes[0] = 1;
  std::size_t listed = 0;
  m.kernel.malloc_type_list([&](malloc_type*) { ++listed; });
  EXPECT_EQ(listed, m.kernel.types().size());
  EXPECT_EQ(m.kernel.type_stats(temp).numallocs, 2u);
  EXPECT_EQ(m.kernel.type_stats(temp).numfrees, 2u);
  EXPECT_EQ(m.kernel.type_stats(other).numallocs, 0u);
}

// REQ: MALLOC9-38. Vector 12: a store into a freed block is found when the block is handed out.
TEST(Malloc9, InvariantsFindAStoreAfterFree) {
  Machine m(invariants());
  auto* p = static_cast<unsigned char*>(m.kernel.malloc(16, &m.type, M_WAITOK));
  m.kernel.free(p, &m.type);
  p[0] = 0x41;
  const std::string panic = panic_of([&] { m.kernel.malloc(16, &m.type, M_WAITOK); });
  const std::string at = "Memory modified after free " + hex(m, p) + " (16, malloc-16, ";
  EXPECT_EQ(m.console, at + hex(m, &m.type) + ") + 0 = deadc0dedeadc041\n");
  EXPECT_EQ(panic, at + "T) + 0 = deadc0dedeadc041\n");
}

// REQ: MALLOC9-38. zfree erases the stamp; the offset is that of the first bad word; an item that
// was never freed has no stamp either.
TEST(Malloc9, InvariantsNameNoType_WithoutAStamp) {
  {
    Machine m(invariants());
    auto* p = static_cast<unsigned char*>(m.kernel.malloc(100, &m.type, M_WAITOK));
    m.kernel.zfree(p, &m.type);
    p[17] = 0;
    EXPECT_EQ(panic_of([&] { m.kernel.malloc(100, &m.type, M_WAITOK); }),
              "Memory modified after free " + hex(m, p) +
                  " (128, malloc-128, 0) + 16 = deadc0dedead00de\n");
    EXPECT_EQ(m.console, "");
  }
  Machine m(invariants());
  auto* p = static_cast<unsigned char*>(m.kernel.malloc(16, &m.type, M_WAITOK));
  p[-16] = 0;  // the item that comes next: a fresh slab is handed out from its end
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(16, &m.type, M_WAITOK); }),
            "Memory modified after free " + hex(m, p - 16) +
                " (16, malloc-16, 0) + 0 = deadc0dedeadc000\n");
}

// REQ: MALLOC9-38. Junk in fresh and freed blocks; the last word is nobody's, and is not checked.
TEST(Malloc9, InvariantsFillWithJunk) {
  Machine m(invariants());
  std::uint64_t* p = static_cast<std::uint64_t*>(m.kernel.malloc(32, &m.type, M_WAITOK));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p[i], 0xdeadc0dedeadc0deu) << i;
  EXPECT_EQ(p[3], 0u);
  std::memset(p, 1, 32);
  m.kernel.free(p, &m.type);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p[i], 0xdeadc0dedeadc0deu) << i;
  EXPECT_EQ(p[3], reinterpret_cast<std::uintptr_t>(&m.type));
  p[3] = 5;
  EXPECT_EQ(m.kernel.malloc(32, &m.type, M_WAITOK), p);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.kernel.malloc(32, &m.type, M_WAITOK | M_ZERO), p);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p[i], 0u) << i;
}

// REQ: MALLOC9-39. Vector 13: a double free; the item's index and the header's address are those of
// a kernel, whose slab headers lie at the end of the page (4008 with INVARIANTS).
TEST(Malloc9, InvariantsFindADoubleFree) {
  Machine m(invariants());
  auto* p = static_cast<std::byte*>(m.kernel.malloc(16, &m.type, M_WAITOK));
  m.kernel.free(p, &m.type);
  const std::uint64_t at = m.kernel.addresses().to_simulated(p);
  char tail[80];
  std::snprintf(tail, sizeof tail, "(malloc-16) slab %#lx(%d)",
                static_cast<unsigned long>(at / 4096 * 4096 + 4008),
                static_cast<int>(at % 4096 / 16));
  EXPECT_EQ(
      panic_of([&] { m.kernel.free(p, &m.type); }),
      "Duplicate free of " + hex(m, p) + " from zone " + hex(m, m.kernel.impl().zones[0]) + tail);
  EXPECT_EQ(*reinterpret_cast<malloc_type**>(p + 8), &m.type);  // the stamp came first
}

// REQ: MALLOC9-39. Addresses inside items, and behind the last item of a slab.
TEST(Malloc9, InvariantsFindAnInteriorFree) {
  struct Row {
    std::size_t size;
    std::size_t from_page;  // offset in the block's page; 0: 8 bytes into the block
    const char* text;
  };
  for (const Row& row : {Row{32, 0, "Unaligned free of "}, Row{384, 3840, "Invalid free of "}}) {
    Machine m(invariants());
    auto* p = static_cast<std::byte*>(m.kernel.malloc(row.size, &m.type, M_WAITOK));
    const auto page = reinterpret_cast<std::uintptr_t>(p) & ~std::uintptr_t{4095};
    void* bad = row.from_page == 0 ? p + 8 : reinterpret_cast<std::byte*>(page) + row.from_page;
    EXPECT_EQ(panic_of([&] { m.kernel.free(bad, &m.type); }).rfind(row.text + hex(m, bad), 0), 0u);
  }
  // Without INVARIANTS a double free puts the block in the caches twice.
  Machine m;
  void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), p);
  EXPECT_EQ(m.kernel.malloc(16, &m.type, M_WAITOK), p);
}

// REQ: MALLOC9-27. The rest of INVARIANTS' texts.
TEST(Malloc9, InvariantsAssertTheRest) {
  struct Row {
    const char* text;
    std::function<void(Machine&)> act;
  };
  const Row rows[] = {
      {"malloc(M_WAITOK) returned NULL",
       [](Machine& m) {
         m.kernel.impl().zones[0]->uz_ctor = [](void*, int, void*, int) { return 1; };
         m.kernel.malloc(1, &m.type, M_WAITOK);
       }},
      {"realloc: called with spinlock or critical section held",
       [](Machine& m) {
         m.kernel.cpus().bind_any();
         const CriticalSection section;
         m.kernel.realloc(nullptr, 1, &m.type, M_NOWAIT);
       }},
      {"Assertion (flags & M_EXEC) == 0 failed at malloc",
       [](Machine& m) {
         m.kernel.malloc(1, &m.type, MallocFlags::from_bits(kM_NOWAIT | kM_EXEC));
       }},
      {"malloc_uninit: bad malloc type version",
       [](Machine& m) {
         m.type.ks_version = 1;
         m.kernel.malloc_uninit(&m.type);
       }},
      {"_free(0): addr 0xfffff80000000000 slab 0x13 with unknown cookie 3",
       [](Machine& m) {
         void* p = m.kernel.malloc(70000, &m.type, M_NOWAIT);
         m.kernel.vm().page_slab[m.kernel.vm().page_of(p)] = 0x13;
         m.kernel.free(p, &m.type);
       }},
  };
  for (const Row& row : rows) {
    Machine m(invariants());
    EXPECT_EQ(panic_of([&] { row.act(m); }), row.text);
  }
  // Alignment 0 passes the power of two and trips the last assertion.
  Machine m(invariants());
  const std::string text = panic_of([&] { m.kernel.malloc_aligned(10, 0, &m.type, M_NOWAIT); });
  EXPECT_EQ(text.rfind("malloc_domainset_aligned: result not aligned 0xfffff8000000", 0), 0u);
  EXPECT_NE(text.find(" size 0xa allocsize 0x10 align 0"), std::string::npos) << text;
}

// REQ: MALLOC9-40. A range without a page of this machine: NULL, whatever the flags, no trace.
TEST(Malloc9, ContigmallocRefusesAnEmptyRange) {
  Machine m(small_config(1, 64 << 20));
  m.trace(m.type);
  EXPECT_EQ(m.kernel.contigmalloc(4096, &m.type, M_WAITOK, 64 << 20), nullptr);
  EXPECT_EQ(m.kernel.contigmalloc(4096, &m.type, M_WAITOK, ~0ull), nullptr);
  EXPECT_EQ(m.kernel.contigmalloc(4096, &m.type, M_NOWAIT, ~0ull), nullptr);
  EXPECT_EQ(m.kernel.contigmalloc(4096, &m.type, M_WAITOK, 0, 4094), nullptr);
  EXPECT_EQ(m.kernel.contigmalloc(4096, &m.type, M_WAITOK, 8192, 4096), nullptr);
  EXPECT_EQ(m.fired(), Fired{});
  EXPECT_EQ(m.stats().numallocs, 0u);
}

// REQ: MALLOC9-41. malloc_aligned tries each domain without waiting, and waits between sweeps: the
// try counts in uz_fails, as one of a waiting malloc() does not.
TEST(Malloc9, AlignedTriesBeforeItWaits) {
  Machine m(small_config(1, 8 << 20));
  m.exhaust();
  const std::uint64_t before = m.zone("malloc-128").fail;
  EXPECT_EQ(panic_of([&] { m.kernel.malloc_aligned(100, 64, &m.type, M_WAITOK); }),
            "deadlock: kernel (tid 100000): malloc_aligned 100 M_T M_WAITOK waits for free pages");
  EXPECT_GT(m.zone("malloc-128").fail, before);
  Machine n(small_config(1, 8 << 20));
  n.exhaust();
  EXPECT_EQ(panic_of([&] { n.kernel.malloc(100, &n.type, M_WAITOK); }),
            "deadlock: kernel (tid 100000): malloc 100 M_T M_WAITOK waits for free pages");
  EXPECT_EQ(n.zone("malloc-128").fail, 0u);
}

// REQ: MALLOC9-33. A deadlock inside realloc is realloc's.
TEST(Malloc9, DeadlockNamesTheCallersOperation) {
  Machine m(small_config(1, 8 << 20));
  void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
  m.exhaust();
  EXPECT_EQ(panic_of([&] { m.kernel.realloc(p, 70000, &m.type, M_WAITOK); }),
            "deadlock: kernel (tid 100000): realloc 70000 M_T M_WAITOK waits for free pages");
}

// REQ: MALLOC9-42. Sizes that are no number of pages: NULL for who does not wait, else a panic.
TEST(Malloc9, ImpossibleSizesAreRefused) {
  const std::function<void*(Machine&, std::size_t, MallocFlags)> kCalls[] = {
      [](Machine& m, std::size_t size, MallocFlags flags) {
        return m.kernel.malloc(size, &m.type, flags);
      },
      [](Machine& m, std::size_t size, MallocFlags flags) {
        return m.kernel.malloc_exec(size, &m.type, flags);
      },
      [](Machine& m, std::size_t size, MallocFlags flags) {
        return m.kernel.contigmalloc(size, &m.type, flags);
      },
      [](Machine& m, std::size_t size, MallocFlags flags) {
        return m.kernel.malloc_aligned(size, 64, &m.type, flags);
      }};
  for (const auto& call : kCalls) {
    Machine m;
    EXPECT_EQ(call(m, SIZE_MAX, M_NOWAIT), nullptr);
    EXPECT_EQ(m.stats().numallocs, 0u);
    EXPECT_EQ(panic_of([&] { call(m, SIZE_MAX, M_WAITOK); }),
              "not modelled: an allocation of 18446744073709551615 bytes that waits");
  }
  Machine m;
  EXPECT_EQ(m.kernel.malloc_aligned((std::size_t{1} << 63) + 1, 64, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.kernel.malloc_exec(0, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(panic_of([&] { m.kernel.malloc_exec(0, &m.type, M_WAITOK); }),
            "not modelled: an allocation of 0 bytes that waits");
}

// REQ: MALLOC9-43. Flags for the page allocator: M_NOVM takes what is cached and asks for no page;
// the others change no class and no record.
TEST(Malloc9, PageAllocatorFlags) {
  Machine m;
  m.trace(m.type);
  const MallocFlags novm = MallocFlags::from_bits(kM_NOWAIT | kM_NOVM);
  EXPECT_EQ(m.kernel.malloc(16, &m.type, novm), nullptr);
  EXPECT_EQ(m.fired(), (Fired{{false, 0, 0}}));
  EXPECT_EQ(m.kernel.uma_kmem_total(), 0u);
  for (const int flag : {kM_NODUMP, kM_NORECLAIM, kM_FIRSTFIT, kM_BESTFIT, kM_NEXTFIT}) {
    EXPECT_NE(m.kernel.malloc(16, &m.type, MallocFlags::from_bits(kM_WAITOK | flag)), nullptr);
    EXPECT_NE(m.kernel.malloc(70000, &m.type, MallocFlags::from_bits(kM_WAITOK | flag)), nullptr);
    EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {false, 73728, -1}})) << flag;
  }
  EXPECT_NE(m.kernel.malloc(16, &m.type, novm), nullptr);
}

// REQ: MALLOC9-29. The whole text.
TEST(Malloc9, ReallocOfContiguousMemory_WithInvariants) {
  Machine m(invariants());
  void* p = m.kernel.contigmalloc(5000, &m.type, M_WAITOK);
  EXPECT_EQ(panic_of([&] { m.kernel.realloc(p, 1, &m.type, M_WAITOK); }),
            "realloc: called for addr 0xfffff80000000000 of unsupported allocation type; "
            "slab 0x4e22 cookie 2");
}

// REQ: MALLOC9-44. An address outside every range prints as its distance from the arena.
TEST(Malloc9, PanicTextsRepeat) {
  Machine m(small_config(1, 8 << 20));
  auto* p = static_cast<std::byte*>(m.kernel.malloc(70000, &m.type, M_WAITOK));
  ASSERT_EQ(hex(m, p), "0xfffff80000000000");
  EXPECT_EQ(panic_of([&] { m.kernel.free(p + (std::size_t{1} << 40) + 5, &m.type); }),
            "_free(0): address 0xfffff90000000005(0xfffff90000000000) has not been allocated");
}

}  // namespace
}  // namespace dtmalloc
