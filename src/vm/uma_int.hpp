// SPDX-License-Identifier: BSD-2-Clause
// UMA's structures. A zone hands out items through per-CPU buckets of pointers; behind them stands
// a list of full buckets per domain; behind that the keg, which cuts slabs into items.
//
//   item    what the caller gets                keg     how slabs are cut, and the slabs
//   slab    a run of pages cut into items       zone    the allocator of one size and name
//   bucket  an array of pointers to free items  cache   what one CPU holds of a zone
//
// Counterpart:  sys/vm/uma_int.h
// Invariants:   UMA-1, per keg: slabs * uk_ipers = live items + items in slabs + in full buckets +
//               in caches; UMA-2, per slab: us_freecount = set bits; UMA-3: a slab is on the list
//               that its us_freecount says (0 full, uk_ipers free or partial, else partial);
//               UMA-4: ud_free_items, ud_free_slabs and uzd_nitems are the sums of their lists;
//               UMA-5: a slab's pages are those of its domain, and so are, in a first-touch zone,
//               the items of a domain's buckets and of a CPU's alloc and free buckets.
// Differs:      a slab's state is never inside its pages, so that an item's page is touched by its
//               user only; an off-page header is still taken from its zone
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <dtmalloc/vm/hot_cache.hpp>
#include <dtmalloc/vm/zone_stats.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "vm/uma_words.hpp"
#include "vm/vm.hpp"

namespace dtmalloc {

inline constexpr std::size_t UMA_SLAB_SIZE = kPageBytes;
inline constexpr int UMA_MAX_WASTE = 10;  // percent
inline constexpr int SLAB_MAX_SETSIZE = 512;
inline constexpr int BUCKET_MAX = 254;

struct uma_bucket {
  uma_bucket* ub_link;
  std::int16_t ub_cnt;
  std::int16_t ub_entries;
  std::uint32_t ub_seq;
  void** items() { return reinterpret_cast<void**>(this + 1); }
};
static_assert(sizeof(uma_bucket) == 16);

// One CPU's share of a zone. The first line is all that a hit touches.
// The number of frees is not kept: each item that came or went is an allocation, a free or part of
// uc_flow, so uc_frees = uc_allocs + items held - uc_flow.
struct alignas(128) uma_cache : HotCache {
  uma_bucket* uc_allocbucket = nullptr;  // ub_cnt is stale while it is here
  uma_bucket* uc_freebucket = nullptr;
  uma_bucket* uc_crossbucket = nullptr;  // of items of other domains
  std::int64_t uc_flow = 0;              // items brought in less items taken away, in buckets
  std::uint64_t spare2[4] = {};

  std::int64_t held() const {
    return (top - base) + (uc_freebucket != nullptr ? uc_freebucket->ub_cnt : 0) +
           (uc_crossbucket != nullptr ? uc_crossbucket->ub_cnt : 0);
  }
  std::uint64_t frees() const { return uc_allocs + static_cast<std::uint64_t>(held() - uc_flow); }
  void load_alloc(uma_bucket* bucket) {
    uc_allocbucket = bucket;
    base = bucket->items();
    top = base + bucket->ub_cnt;
    end = base + bucket->ub_entries;
  }
  // What the CPU holds leaves it.
  std::array<uma_bucket*, 3> unload() {
    const std::array<uma_bucket*, 3> out{unload_alloc(), std::exchange(uc_freebucket, nullptr),
                                         std::exchange(uc_crossbucket, nullptr)};
    for (const uma_bucket* bucket : out)
      if (bucket != nullptr) uc_flow -= bucket->ub_cnt;
    return out;
  }
  uma_bucket* unload_alloc() {
    uma_bucket* bucket = uc_allocbucket;
    if (bucket != nullptr) bucket->ub_cnt = static_cast<std::int16_t>(top - base);
    uc_allocbucket = nullptr;
    top = base = end = nullptr;
    return bucket;
  }
  // The two buckets change places. Requires: there is a free bucket.
  void swap_buckets() {
    uma_bucket* bucket = uc_freebucket;
    uc_freebucket = unload_alloc();
    load_alloc(bucket);
  }
  // An alloc bucket that is empty (full) gives way to a free bucket that is not. False: there is
  // none.
  bool swap_to_alloc() {
    if (uc_freebucket == nullptr || uc_freebucket->ub_cnt == 0) return false;
    swap_buckets();
    return true;
  }
  bool swap_to_free() {
    if (uc_freebucket == nullptr || uc_freebucket->ub_cnt >= uc_freebucket->ub_entries)
      return false;
    swap_buckets();
    return true;
  }
};
static_assert(sizeof(uma_cache) == 128);

struct uma_slab {
  uma_slab* us_next;
  uma_slab* us_prev;
  std::uint16_t us_freecount;
  std::uint8_t us_flags;
  std::uint8_t us_domain;
  std::uint32_t us_list;  // which list of the keg: SlabList
  uma_keg* us_keg;
  std::byte* us_data;
  void* us_header;  // the item of the slab-header zone; null: inline
  std::uint64_t* free_bits() { return reinterpret_cast<std::uint64_t*>(this + 1); }
  // INVARIANTS: a set bit is an item that is allocated. Follows the free bits.
  std::uint64_t* debug_bits(std::uint32_t ipers) { return free_bits() + (ipers + 63u) / 64; }
};

enum SlabList : std::uint32_t { kPartial, kFree, kFull };

struct uma_domain : DomainWords {
  std::mutex ud_lock;
  uma_slab* lists[3] = {};  // ud_part_slab, ud_free_slab, ud_full_slab
};

// How a keg cuts its slabs. No items: no header has a place.
struct KegLayout {
  std::uint32_t rsize, ppera, ipers;
  bool offpage;
  bool vtoslab;              // the header is not in every item's page
  std::uint32_t pgoff;       // of an inline header
  std::uint32_t efficiency;  // percent, as the sysctl has it
};
// `cpus`: copies of each item, a page apart, with UMA_ZONE_PCPU. `multipage`: more pages than an
// item needs may make a better slab.
KegLayout keg_layout(std::size_t size, int align, bool invariants, std::uint32_t flags = 0,
                     int cpus = 1, bool multipage = true);
// Bytes of an inline header for `items` items, and of an off-page header's item.
std::size_t slab_header_size(std::uint32_t items, bool invariants);
std::size_t offpage_header_size(std::uint32_t items, bool invariants);

struct uma_keg : KegWords {
  Vm* vm = nullptr;
  uma_init uk_init = nullptr;
  uma_fini uk_fini = nullptr;
  bool trash = false;  // INVARIANTS: free items hold junk, which is looked at when a slab goes
  std::uint32_t efficiency = 0;
  std::uint8_t page_zone = 0;               // what the page map says of its pages
  uma_zone* zone = nullptr;                 // the primary zone
  std::unique_ptr<uma_domain[]> uk_domain;  // one a NUMA domain
  std::uint32_t dr_iter = 0;                // uk_dr: its round-robin over all domains
  // Slab states, in blocks that live as long as the keg.
  std::mutex blocks_mutex;
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks;
  std::size_t block_used = 0;
  uma_slab* spare_slabs = nullptr;

  std::size_t domains() const { return static_cast<std::size_t>(vm->config.domains); }
  uma_domain& domain(int id) { return uk_domain[static_cast<std::size_t>(id)]; }
};

struct uma_zone_domain {
  std::mutex uzd_lock;
  uma_bucket* uzd_buckets = nullptr;  // full buckets, the last one put first
  uma_bucket* uzd_cross = nullptr;    // what comes back from other domains, while it fills
  // While the timer is parked uzd_timin lags behind: see uma_timer_sync().
  std::int64_t uzd_nitems = 0;
  std::int64_t uzd_imax = 0, uzd_imin = 0, uzd_bimin = 0, uzd_wss = 0, uzd_limin = 0;
  std::uint32_t uzd_timin = 0;
  int last_cpu = -1;  // who took uzd_lock last, and when: deterministic runs
  std::uint64_t last_time = 0;
};

// A zone's limit, and who waits for it: uma_limit.cpp.
struct ZoneLimit {
  struct Ticket {
    std::atomic<bool> woken{false};
  };
  std::mutex mutex;           // also guards the zone's uz_items, and uz_sleepers for writers
  std::deque<Ticket*> queue;  // who sleeps and was not woken, first come first
  bool warned = false;
  std::uint64_t warned_at = 0;
  std::function<void(uma_zone*)> uz_maxaction;
  bool action_due = false;
};

struct uma_zone : ZoneWords {
  Vm* vm = nullptr;
  uma_ctor uz_ctor = nullptr;
  uma_dtor uz_dtor = nullptr;
  uma_import uz_import = nullptr;  // cache-only zones: where items come from and go to
  uma_release uz_release = nullptr;
  void* uz_arg = nullptr;
  uma_init uz_init = nullptr;  // of this zone, between keg and caches
  uma_fini uz_fini = nullptr;
  ZoneLimit limit;
  bool listed = true;                            // not destroyed; guarded by zones_mutex
  std::atomic<std::uint32_t> uz_users{0};        // who may sleep in an allocation from it
  std::atomic<std::uint64_t> uz_refused{0};      // of the CPUs' uc_allocs: the constructor refused
  std::unique_ptr<uma_zone_domain[]> uz_domain;  // one a NUMA domain
  std::mutex uz_cross_lock;                      // guards uzd_cross of all domains
  // uz_cpu[id]: made at the first use on that CPU; those of malloc zones lie in the CPU itself.
  std::unique_ptr<std::atomic<uma_cache*>[]> uz_cpu;
  std::vector<std::unique_ptr<uma_cache>> own_caches;

  std::size_t domains() const { return static_cast<std::size_t>(vm->config.domains); }
  bool limited() const { return uz_max_items.load(std::memory_order_relaxed) != 0; }
  // Whether TRIM and the timer see to it.
  bool timed() const {
    return (uz_flags & (vm->config.has_notrim ? UMA_ZONE_UNMANAGED | UMA_ZONE_NOTRIM
                                              : UMA_ZONE_UNMANAGED)) == 0;
  }
  uma_zone_domain& domain(int id) { return uz_domain[static_cast<std::size_t>(id)]; }
  bool first_touch() const { return (uz_flags & UMA_ZONE_FIRSTTOUCH) != 0; }
  uma_cache* cache_or_null(int cpu) {
    return uz_cpu[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
  }
};

// --- zones (uma_zone.cpp)
void uma_startup(Vm& vm);
uma_zone* zone_create(Vm& vm, const std::string& name, std::size_t size, int align,
                      std::uint32_t flags, std::uint8_t page_zone);
// A zone of a keg that exists, or of none.
uma_zone& zone_make(Vm& vm, const std::string& name, std::size_t size, std::uint32_t flags,
                    uma_keg* keg);
// Panics about flags that are not modelled, and under INVARIANTS about a senseless pair.
void check_zone_flags(Vm& vm, std::uint32_t flags);
// Panics about a size that the machine's types do not hold.
void check_zone_size(Vm& vm, const char* name, std::size_t size);
uma_cache& zone_new_cache(uma_zone& zone, int cpu);
// The zone's cache on a CPU, made if there is none.
inline uma_cache& zone_cache(uma_zone& zone, int cpu) {
  uma_cache* cache = zone.cache_or_null(cpu);
  return cache != nullptr ? *cache : zone_new_cache(zone, cpu);
}
// Makes `cache` the zone's cache on a CPU that has none.
void zone_attach_cache(uma_zone& zone, int cpu, uma_cache* cache);

// --- what D programs see (uma_words.cpp)
// A text at an address that D programs can read, for as long as the machine lives. None: null.
const char* uma_text(Vm& vm, const char* text);
// Requires in what follows: zones_mutex held. A zone and a keg that are shown are on their lists.
void keg_show(uma_keg& keg);
void zone_show(uma_zone& zone);
void zone_unlist(uma_zone& zone);  // and its keg, if it is the primary zone
void zone_hide(uma_zone& zone);
void keg_hide(uma_keg& keg);

// --- what is told about zones (uma_stats.cpp, uma_sysctl.cpp)
// The zones that are not destroyed, in vmstat -z's order, the timer's counts brought up to date.
// None may be destroyed while it is used.
std::vector<uma_zone*> zone_list(Vm& vm);
// The sums over CPUs are made with each stopped for a moment.
ZoneStats zone_stats(uma_zone& zone);
std::vector<ZoneStats> zone_stats(Vm& vm);  // of zone_list()
// The value of vm.zone_stats.
std::string zone_stats_stream(Vm& vm);
void uma_sysctl_init(Vm& vm);
std::string flags_text(std::uint32_t flags);  // as %b prints them

// --- the per-CPU layer and the zone (uma_core.cpp)
// Inside a section on the current CPU, with an empty alloc bucket. True: try again.
bool cache_alloc(uma_zone& zone, void* udata, int flags);
// Inside a section, with a full (or no) alloc bucket, or cross bucket if the item is another
// domain's. True: try again.
bool cache_free(uma_zone& zone, void* udata, int item_domain);
void* zone_alloc_item(uma_zone& zone, void* udata, int domain, int flags);
// What has been done to an item that is freed. Not SKIP_FINI: nobody needs it.
enum zfreeskip : int { SKIP_NONE = 0, SKIP_DTOR = 0x10000 };
void zone_free_item(uma_zone& zone, void* item, void* udata, zfreeskip skip);
// A bucket that a CPU gives up: to the zone's list, or to the slabs; an empty one to its zone.
// `mixed`: its items may be of several domains.
void zone_free_bucket(uma_zone& zone, uma_bucket* bucket, void* udata, bool working_set,
                      bool mixed);
// The items of a bucket go back to their slabs.
void bucket_drain(uma_zone& zone, uma_bucket* bucket);

// --- buckets (uma_bucket.cpp)
std::uint16_t bucket_select(std::size_t size);
uma_bucket* bucket_alloc(uma_zone& zone, void* udata, int flags);
void bucket_free(uma_zone& zone, uma_bucket* bucket, void* udata);
void bucket_init(Vm& vm);

// --- the working set of a zone's domain (uma_workset.cpp); requires: uzd_lock held
void workset_put(uma_zone_domain& domain, std::int64_t count, bool working_set);
void workset_take(uma_zone_domain& domain, std::int64_t count);
void workset_reclaim(uma_zone_domain& domain, std::int64_t count);
void workset_update(uma_zone_domain& domain);

// --- reclaim (uma_reclaim.cpp)
enum class Reclaim { timer, trim, drain };
// The listed zones, none of which is destroyed while this lives, in order of creation.
struct ZonesInUse {
  explicit ZonesInUse(Vm& machine);
  ~ZonesInUse();
  ZonesInUse(const ZonesInUse&) = delete;
  ZonesInUse& operator=(const ZonesInUse&) = delete;
  Vm& vm;
  std::vector<uma_zone*> zones;
};
// Full buckets to slabs, empty slabs to the supply. True: some bucket went.
bool zone_reclaim(uma_zone& zone, int domain, Reclaim how);
void keg_drain(uma_keg& keg, int domain);
// The slab, on no list and not counted any more, is finished and its pages given back. `items`: so
// many were initialised.
void keg_free_slab(uma_keg& keg, uma_slab* slab, std::uint32_t items);
// One look of the 20 s timer. False: neither this one nor a later one would find anything to do.
bool uma_timeout_pass(Vm& vm);

// --- the timer (uma_timer.cpp)
void uma_timer_sync(Vm& vm);
void uma_timer_start(Vm& vm);
void uma_timer_end(Vm& vm);
// A bucket came or went. Requires: uzd_lock not held.
inline void uma_timer_touch(Vm& vm) {
  vm.timer.touched.store(true);
  if (vm.timer.parked.load()) uma_timer_start(vm);
}

// --- the keg (uma_keg.cpp)
// The zone of a keg's off-page headers.
uma_zone* slab_zone(const uma_keg& keg);
// Where a kernel has the slab's header; of none: null.
const void* slab_header_at(const uma_slab* slab);
// The pages of a slab, from where a kernel's keg has them (uk_allocf) and to there (uk_freef).
// kNoPage: none.
std::uint64_t keg_pages_alloc(uma_keg& keg, uma_zone* zone, int domain, int flags);
void keg_pages_free(uma_keg& keg, std::uint64_t first);
// Up to `max` items into `items`, of a domain or of UMA_ANYDOMAIN; sleeps for the first one only.
int zone_import(uma_zone& zone, void** items, int max, int domain, int flags);
void zone_release(uma_zone& zone, void** items, int count);
// One more slab, on the free list.
void keg_prealloc_slab(uma_keg& keg);

// --- from the keg or a cache-only zone's own source, through the zone's init (uma_special.cpp)
int zone_fetch(uma_zone& zone, void** items, int max, int domain, int flags);
void zone_give_back(uma_zone& zone, void** items, int count);
void pcpu_zones_startup(Vm& vm);

// --- limits (uma_limit.cpp)
// How many of `count` items the limit grants, at least 1; 0: none, and the flags say not to wait.
int zone_alloc_limit(uma_zone& zone, int count, int flags);
void zone_free_limit(uma_zone& zone, int count);
// True: the calling thread runs the zone's action, after which the zone is destroyed.
bool zdestroy_after_action(const uma_zone& zone);

void uma_knobs(Vm& vm);  // sysctl nodes (uma_knobs.cpp)

// --- INVARIANTS (uma_dbg.cpp): panics if the item is allocated, is not, or is none
void uma_dbg_alloc(uma_zone& zone, void* item);
void uma_dbg_free(uma_zone& zone, void* item);
// Whether vm.debug.divisor passes an item over.
bool uma_dbg_skip(uma_zone& zone, const void* item);
bool uma_dbg_kskip(uma_keg& keg, const void* item);
// The assertions of each call.
void uma_zalloc_debug(uma_zone& zone, int flags);
void uma_zfree_debug(uma_zone& zone);
// Junk in free items of zones without an init of their own (UMA_ZFLAG_TRASH).
void trash_attach(uma_zone& zone);
void trash_check(Vm& vm, const void* mem, std::size_t size, const char* zone);
void trash_fill(void* mem, std::size_t size);

// --- walkers (uma_check.cpp): empty if all is well, else the law and what breaks it
std::string check_arena(Vm& vm);
std::string check_keg(uma_keg& keg);
std::string check_zone_lists(uma_zone& zone);
std::string check_zone(uma_zone& zone);
std::string check_vm(Vm& vm);  // all of them

}  // namespace dtmalloc
