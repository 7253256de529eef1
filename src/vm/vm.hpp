// SPDX-License-Identifier: BSD-2-Clause
// The memory of one machine: arena, pages, page map, zones.
//
// Arrays, one entry a page of the arena, answer "what is at this address?":
//   page_slab[p]     0: nothing; (uma_slab *): a slab covers it; size << 2 | 1: a large block
//   begins
//                    here; size << 2 | 2: a contiguous block begins here (the kernel's slab
//                    cookies)
//   page_zone[d][p]  1 + class index of the malloc zone whose slab covers the page; 0: look
//   further.
//                    What the CPUs of NUMA domain d read: a page of another domain is 0 there, so
//                    that freeing a foreign item leaves the hot path
//   page_attr[p]     PageAttr of a page that is handed out
//
// The arena is cut into one area a domain, all equally large, each area_pages pages: the domain of
// a page is arithmetic. The machine's pages are split evenly. Physical memory is that of domain 0,
// then that of domain 1 and so on: page i of a domain's first page_count arena pages is physical
// page first_physical + i; the rest of an area has no physical address in this model, although it
// holds data, since the arena is larger than memory.
//
// Locking:      a domain's page_mutex guards its free runs and counts; page_slab words are
// published
//               with release stores. Order: keg, zone domain, page_mutex. In a section only
//               zones_mutex is taken, the last of all, to make a zone's cache on its first use by a
//               CPU.
// Invariants, per domain:
//               VM-1: free runs do not touch; VM-2: pages in runs + pages handed out = area_pages;
//               VM-3: free_count + pages handed out = page_count; VM-4: page_zone of another
//               domain's page is 0.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <dtmalloc/smp/cpu.hpp>
#include <dtmalloc/sys/address_map.hpp>
#include <dtmalloc/sys/sysctl.hpp>
#include <dtmalloc/vm/domainset.hpp>
#include <dtmalloc/vm/kmem.hpp>
#include <dtmalloc/vm/uma.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sys/call_sites.hpp"
#include "vm/uma_words.hpp"

namespace dtmalloc {

struct uma_keg;
struct uma_slab;
struct uma_cache;
struct Memguard;

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
  const uma_zone* zone = nullptr;  // uma_zalloc(): there is no type
};
extern constinit thread_local const OperationNote* current_operation;

struct VmConfig {
  std::uint64_t mem;
  bool invariants;
  int domains = 1;         // NUMA domains, 1 to kMaxDomains
  bool has_notrim = true;  // UMA_ZONE_NOTRIM is known: release 16
  int cpus = 1;            // of the boot: copies of per-CPU items
};

inline constexpr std::uint64_t UMA_TIMEOUT = 20'000'000'000;  // ns

// Who helps when memory is short, and when next: lowmem.cpp.
struct Lowmem {
  struct Pass {
    bool due = false;
    std::uint64_t after = 0;  // not before
    CalloutId id = 0;
  };
  std::mutex mutex;
  std::vector<std::shared_ptr<LowmemHandler::Entry>> handlers;
  Pass daemon, worker;
  std::atomic<std::uint64_t> seen{~std::uint64_t{0}};  // operations done when sleepers were woken
  std::atomic<std::uint64_t> offers{0};                // passes that woke all sleepers for pages
  std::atomic<std::uint64_t> slab_frees{0};            // of page_frees
};

// The state of UMA's timer: uma_timer.cpp.
struct UmaTimer {
  std::mutex mutex;
  std::atomic<bool> parked{true};    // no callout exists
  std::atomic<bool> touched{false};  // a bucket came or went since the last look began
  std::uint64_t last = 0;            // time of the last look, made or made up for
  CalloutId id = 0;
};

// Bit d: domain d.
using DomainMask = std::uint32_t;

enum PageAttr : std::uint8_t {
  kPageNoDump = 1,  // M_NODUMP
  kPageExec = 2,    // the arena of executable memory: M_EXEC
  kPageNoFree = 4,  // the arena of what is never freed: M_NEVERFREED
};

// One NUMA domain's area of the arena and its pages.
struct VmDomain {
  std::mutex page_mutex;
  std::map<std::uint64_t, std::uint64_t> runs;            // first page -> pages
  std::set<std::pair<std::uint64_t, std::uint64_t>> fit;  // (pages, first page)
  std::uint64_t first_page = 0;                           // of the area
  std::uint64_t first_physical = 0;
  std::uint64_t page_count = 0;
  std::atomic<std::uint64_t> free_count{0};
  std::atomic<std::uint64_t> page_frees{0};  // calls of page_free(): see page_wait()
  PageThresholds thresholds{};

  // Whether there are fewer free pages than the minimum.
  bool below_wakeup() const { return free_count.load() < thresholds.wakeup(); }
  bool below_severe() const { return free_count.load() < thresholds.free_severe; }
  bool below_min() const {
    return free_count.load(std::memory_order_relaxed) < thresholds.free_min;
  }
};

struct Vm {
  Vm(CpuSet& cpu_set, AddressMap& address_map, SysctlTree& sysctl_tree, const VmConfig& vm_config);
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  // Whether the host grants the address space for `mem` bytes of memory in `domains` domains.
  static bool can_reserve(std::uint64_t mem, int domains);

  CpuSet& cpus;
  AddressMap& addresses;
  SysctlTree& sysctl;
  const VmConfig config;

  std::byte* arena = nullptr;
  std::size_t arena_pages = 0;
  std::size_t area_pages = 0;  // of a domain
  std::atomic<std::uintptr_t>* page_slab = nullptr;
  std::array<std::uint8_t*, kMaxDomains> page_zone{};
  std::uint8_t* page_attr = nullptr;
  std::atomic<bool> page_attr_used{false};  // false: all entries are 0

  // --- pages
  std::uint64_t page_count = 0;
  std::unique_ptr<VmDomain[]> domains;  // config.domains of them
  std::atomic<int> page_waiters{0};     // also the channel that they sleep on

  DomainMask all_domains() const { return (DomainMask{1} << config.domains) - 1; }
  int domain_of_page(std::uint64_t page) const {
    return config.domains == 1 ? 0 : static_cast<int>(page / area_pages);
  }
  // Of an address in the arena.
  int domain_of(const void* addr) const { return domain_of_page(page_of(addr)); }
  // The domain of a CPU: the first `cpus` are split evenly in order of their ids, later ones go
  // round.
  int domain_of_cpu(int id, int cpus) const {
    return id < cpus ? id * config.domains / cpus : id % config.domains;
  }
  std::uint64_t free_pages() const;  // of all domains
  bool pages_low() const;            // whether the page daemon is wanted
  bool page_count_severe() const;    // whether any domain has all but no pages
  bool page_count_min() const;       // whether any domain is below its minimum
  std::uint64_t page_frees(DomainMask set) const;

  static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
  // `pages` adjacent pages of a domain, or kNoPage; sleeps with M_WAITOK until there are some.
  std::uint64_t page_alloc(int domain, std::uint64_t pages, int flags);
  // Ditto with physical addresses in [low, high]; never sleeps. `nowhere`: set if no page of the
  // domain lies there.
  std::uint64_t page_alloc_contig(int domain, std::uint64_t pages, int flags, std::uint64_t low,
                                  std::uint64_t high, std::size_t alignment, std::uint64_t boundary,
                                  bool* nowhere);
  void page_free(std::uint64_t first, std::uint64_t pages);
  // Sleeps until pages of one of the domains come back, unless some have since page_frees(set) was
  // `seen`.
  void page_wait(DomainMask set, std::uint64_t seen);

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
    const auto domain = static_cast<std::size_t>(domain_of_page(page));
    std::atomic_ref<std::uint8_t>(page_zone[domain][page]).store(value, std::memory_order_relaxed);
  }

  // --- UMA
  std::mutex zones_mutex;  // guards the lists; no lock of this layer is taken under it
  std::deque<std::unique_ptr<uma_zone>> zones;  // in order of creation
  std::deque<std::unique_ptr<uma_keg>> kegs;    // ditto
  ShownZones shown;
  std::array<uma_zone*, 8> bucket_zones{};
  std::array<uma_zone*, 2> slab_zones{};
  std::atomic<bool> bucketdisable{false};
  UmaTimer timer;
  std::atomic<std::uint64_t> uma_kmem_total{0};
  std::atomic<std::uint64_t> uma_kmem_limit{0};
  void kmem_total_add(std::uint64_t bytes);  // above the limit: wakes the worker
  void kmem_total_sub(std::uint64_t bytes) { uma_kmem_total.fetch_sub(bytes); }
  CallSites call_sites;
  std::unique_ptr<Memguard> memguard;  // DEBUG_MEMGUARD
  Lowmem lowmem;
  std::atomic<int> zone_warnings{1};  // vm.zone_warnings
  bool multipage_slabs = true;        // vm.debug.uma_multipage_slabs; set before uma_startup()
  unsigned dbg_divisor = 1;           // vm.debug.divisor; set when the machine boots
  std::atomic<std::uint64_t> dbg_trashed{0};  // vm.debug.trashed
  std::atomic<std::uint64_t> dbg_skipped{0};  // vm.debug.skipped
  std::atomic<int> bad_wait_flags{0};         // printed so far
  std::array<uma_zone*, 5> pcpu_zones{};

  // Says what an operation is ("malloc 65536 M_A M_WAITOK"); set by the layer above.
  std::function<std::string(const OperationNote&)> describe_operation;

 private:
  void release();  // the mappings
  void set_attributes(std::uint64_t first, std::uint64_t pages, int flags);
  std::uint64_t try_page_alloc(int domain, std::uint64_t pages, int flags);
};

// The malloc flags as uma and the page allocator see them.
namespace m {
inline constexpr int NOWAIT = 0x1, WAITOK = 0x2, NORECLAIM = 0x80, ZERO = 0x100, NOVM = 0x200,
                     USE_RESERVE = 0x400, NODUMP = 0x800, EXEC = 0x4000, NEVERFREED = 0x10000;
}

// Walks the domains of a set in the order of its policy (domainset.cpp): those below their minimum
// of free pages last, none twice in a sweep. Every try is without waiting; with M_WAITOK the walk
// itself sleeps between sweeps. Counterpart: struct vm_domainset_iter.
struct vm_domainset_iter {
  Vm* vm = nullptr;
  const domainset* di_domain = nullptr;
  std::uint32_t* di_iter = nullptr;  // round-robin's counter
  DomainMask di_valid_mask = 0;      // the set's domains that this machine has
  DomainMask di_remain_mask = 0;     // not asked yet in this phase
  DomainMask di_min_mask = 0;        // kept for the second phase
  int di_flags = 0;
  bool di_minskip = true;  // the first phase
  std::uint64_t seen = 0;  // page_frees() when the sweep began
};
// Both return 0 with a domain to ask, or ENOMEM. init: M_WAITOK in `flags` becomes M_NOWAIT.
int vm_domainset_iter_policy_init(vm_domainset_iter& di, Vm& vm, const domainset& ds, int* domain,
                                  int* flags);
int vm_domainset_iter_policy(vm_domainset_iter& di, int* domain);
// As init, with a counter of the caller's.
int vm_domainset_iter_policy_ref_init(vm_domainset_iter& di, Vm& vm, const domainset& ds,
                                      std::uint32_t* iter, int* domain, int* flags);
// The walk never comes back to the domain.
void vm_domainset_iter_ignore(vm_domainset_iter& di, int domain);

// INVARIANTS: the pairing of flags that is asserted only when pages are needed.
void check_reserve_flags(Vm& vm, int flags);
// What the calling thread does, for the report of a deadlock.
std::string operation_text(Vm& vm);

// --- lowmem.cpp
// Free pages have changed, or are wanted. No lock held.
void pages_changed(Vm& vm);
void pagedaemon_wakeup(Vm& vm);
void invoke_lowmem_handlers(Vm& vm, int flags);
// Whether the calling thread runs a pass or a handler: it must not sleep.
bool in_reclaim_pass();
void lowmem_end(Vm& vm);

}  // namespace dtmalloc
