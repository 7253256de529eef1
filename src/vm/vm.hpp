// SPDX-License-Identifier: BSD-2-Clause
// The memory of one machine: arena, pages, page map, zones.
//
// Two arrays, one entry a page of the arena, answer "what is at this address?":
//   page_zone[p]  1 + class index of the malloc zone whose slab covers the page; 0: look further
//   page_slab[p]  0: nothing; (uma_slab *): a slab covers it; size << 2 | 1: a large block begins
//                 here; size << 2 | 2: a contiguous block begins here (the kernel's slab cookies)
//
// Locking:      page_mutex guards free runs and counts; page_slab words are published with release
//               stores. Order: keg, zone domain, page_mutex. In a section only zones_mutex is
//               taken, the last of all, to make a zone's cache on its first use by a CPU.
// Invariants:   VM-1: free runs do not touch; VM-2: pages in runs + pages handed out = arena_pages;
//               VM-3: free_count + pages handed out = page_count.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <dtmalloc/smp/cpu.hpp>
#include <dtmalloc/sys/address_map.hpp>
#include <dtmalloc/sys/sysctl.hpp>
#include <dtmalloc/vm/kmem.hpp>
#include <dtmalloc/vm/uma.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace dtmalloc {

struct uma_keg;
struct uma_slab;
struct uma_cache;

inline constexpr int SLAB_COOKIE_SHIFT = 2;
inline constexpr std::uintptr_t SLAB_COOKIE_MASK = 3;
inline constexpr std::uintptr_t SLAB_COOKIE_SLAB_PTR = 0;
inline constexpr std::uintptr_t SLAB_COOKIE_MALLOC_LARGE = 1;
inline constexpr std::uintptr_t SLAB_COOKIE_CONTIG_MALLOC = 2;

// What the current thread does, for the report of a deadlock; a chain, innermost first.
struct OperationNote {
  const char* name;
  std::size_t size;
  const void* type;
  int flags;
};
extern constinit thread_local const OperationNote* current_operation;

struct VmConfig {
  std::uint64_t mem;
  bool invariants;
  int domains = 1;         // NUMA domains, 1 to kMaxDomains
  bool has_notrim = true;  // UMA_ZONE_NOTRIM is known: release 16
};

inline constexpr std::uint64_t UMA_TIMEOUT = 20'000'000'000;  // ns

// The state of UMA's timer: uma_timer.cpp.
struct UmaTimer {
  std::mutex mutex;
  std::atomic<bool> parked{true};    // no callout exists
  std::atomic<bool> touched{false};  // a bucket came or went since the last look began
  std::uint64_t last = 0;            // time of the last look, made or made up for
  CalloutId id = 0;
};

struct Vm {
  Vm(CpuSet& cpu_set, AddressMap& address_map, SysctlTree& sysctl_tree, const VmConfig& vm_config);
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  // Whether the host grants the address space for `mem` bytes of memory.
  static bool can_reserve(std::uint64_t mem);

  CpuSet& cpus;
  AddressMap& addresses;
  SysctlTree& sysctl;
  const VmConfig config;

  std::byte* arena = nullptr;
  std::size_t arena_pages = 0;
  std::uint8_t* page_zone = nullptr;
  std::atomic<std::uintptr_t>* page_slab = nullptr;

  // --- pages
  std::mutex page_mutex;
  std::map<std::uint64_t, std::uint64_t> runs;            // first page -> pages
  std::set<std::pair<std::uint64_t, std::uint64_t>> fit;  // (pages, first page)
  std::uint64_t page_count = 0;
  std::atomic<std::uint64_t> free_count{0};
  std::atomic<std::uint64_t> page_frees{0};  // calls of page_free(): see page_wait()
  PageThresholds thresholds{};
  std::atomic<int> page_waiters{0};

  static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
  // `pages` adjacent pages, or kNoPage; never sleeps. `nowhere`: set if no page of the machine lies
  // in [low, high].
  std::uint64_t page_alloc(std::uint64_t pages, int flags);
  std::uint64_t page_alloc_contig(std::uint64_t pages, int flags, std::uint64_t low,
                                  std::uint64_t high, std::size_t alignment, std::uint64_t boundary,
                                  bool* nowhere);
  void page_free(std::uint64_t first, std::uint64_t pages);
  // Sleeps until pages come back, unless some have since page_frees was `seen`.
  void page_wait(std::uint64_t seen);
  bool page_count_min() const { return free_count.load() < thresholds.free_min; }

  bool in_arena(const void* addr) const {
    return reinterpret_cast<std::uintptr_t>(addr) - reinterpret_cast<std::uintptr_t>(arena) <
           arena_pages * kPageBytes;
  }
  std::uint64_t page_of(const void* addr) const {
    return (reinterpret_cast<std::uintptr_t>(addr) - reinterpret_cast<std::uintptr_t>(arena)) /
           kPageBytes;
  }
  std::byte* page_address(std::uint64_t page) const { return arena + page * kPageBytes; }
  std::uintptr_t slab_word(const void* addr) const {
    return in_arena(addr) ? page_slab[page_of(addr)].load(std::memory_order_acquire) : 0;
  }
  void set_page_zone(std::uint64_t page, std::uint8_t value) {
    std::atomic_ref<std::uint8_t>(page_zone[page]).store(value, std::memory_order_relaxed);
  }

  // --- UMA
  std::mutex zones_mutex;  // guards the lists; no lock of this layer is taken under it
  std::deque<std::unique_ptr<uma_zone>> zones;  // in order of creation
  std::deque<std::unique_ptr<uma_keg>> kegs;    // ditto
  std::uint64_t zones_made = 0;
  std::array<uma_zone*, 8> bucket_zones{};
  std::array<uma_zone*, 2> slab_zones{};
  std::atomic<bool> bucketdisable{false};
  UmaTimer timer;
  std::atomic<std::uint64_t> uma_kmem_total{0};
  void kmem_total_add(std::uint64_t bytes) { uma_kmem_total.fetch_add(bytes); }
  void kmem_total_sub(std::uint64_t bytes) { uma_kmem_total.fetch_sub(bytes); }

  // Says what an operation is ("malloc 65536 M_A M_WAITOK"); set by the layer above.
  std::function<std::string(const OperationNote&)> describe_operation;

 private:
  void take_run(std::map<std::uint64_t, std::uint64_t>::iterator run, std::uint64_t first,
                std::uint64_t pages);
  bool may_take(std::uint64_t pages, int flags) const;
};

// The malloc flags as uma and the page allocator see them.
namespace m {
inline constexpr int NOWAIT = 0x1, WAITOK = 0x2, ZERO = 0x100, NOVM = 0x200, USE_RESERVE = 0x400;
}

// INVARIANTS: the pairing of flags that is asserted only when pages are needed.
void check_reserve_flags(Vm& vm, int flags);

}  // namespace dtmalloc
