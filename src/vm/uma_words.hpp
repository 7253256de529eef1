// SPDX-License-Identifier: BSD-2-Clause
// What D programs see of zones and kegs: FreeBSD's members, in FreeBSD's order, of which the model
// has the fact. They are where they are used; the rest of a zone or keg lies behind them, where no
// program can read.
//
// Counterpart:  sys/vm/uma_int.h
// Invariants:   a word here is a number, or points into what D programs can read, or is null
// Differs:      a counter is one word, not one a CPU; the functions of a zone and the buckets of
//               its CPUs are not shown
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dtmalloc {

struct uma_keg;
struct uma_zone;

// LIST_HEAD and LIST_ENTRY.
template <typename T>
struct ListHead {
  T* lh_first = nullptr;
};
template <typename T>
struct ListEntry {
  T* le_next = nullptr;
  T** le_prev = nullptr;
};

using counter_u64_t = std::atomic<std::uint64_t>*;

struct ZoneWords {
  ZoneWords() = default;
  ZoneWords(const ZoneWords&) = delete;
  ZoneWords& operator=(const ZoneWords&) = delete;

  std::uint32_t uz_flags = 0;
  std::uint32_t uz_size = 0;
  std::atomic<std::uint64_t> uz_max_items{0};  // 0: none
  std::uint64_t uz_bucket_max = ~std::uint64_t{0};
  std::atomic<std::uint16_t> uz_bucket_size{0};
  std::uint16_t uz_bucket_size_max = 0;
  std::atomic<std::uint32_t> uz_sleepers{0};
  counter_u64_t uz_xdomain = &counters[0];
  uma_keg* uz_keg = nullptr;   // null: a cache-only zone
  std::uint64_t uz_items = 0;  // out and cached, and the sleepers
  std::atomic<std::uint64_t> uz_sleeps{0};
  ListEntry<uma_zone> uz_link;
  counter_u64_t uz_allocs = &counters[1];
  counter_u64_t uz_frees = &counters[2];
  counter_u64_t uz_fails = &counters[3];
  const char* uz_name = nullptr;
  const char* uz_ctlname = nullptr;
  std::int32_t uz_namecnt = 0;  // older zones of this name
  std::uint16_t uz_bucket_size_min = 0;
  std::uint16_t uz_reclaimers = 0;   // who may be at work on it; guarded by zones_mutex
  const char* uz_warning = nullptr;  // guarded by the limit's mutex
  std::atomic<std::uint64_t> counters[4] = {};

  static constexpr int kSleeperShift = 44;  // UZ_ITEMS_SLEEPER_SHIFT
  static constexpr std::uint64_t kSleeper = std::uint64_t{1} << kSleeperShift;
  std::uint64_t item_count() const { return uz_items & (kSleeper - 1); }
};
static_assert(std::is_standard_layout_v<ZoneWords>);
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && sizeof(std::atomic<std::uint16_t>) == 2);

struct KegWords {
  ListHead<uma_zone> uk_zones;
  std::uint32_t uk_align = 0;
  std::uint32_t uk_reserve = 0;
  std::uint32_t uk_size = 0;
  std::uint32_t uk_rsize = 0;
  std::uint32_t uk_pgoff = 0;
  std::uint16_t uk_ppera = 0;
  std::uint16_t uk_ipers = 0;
  std::uint32_t uk_flags = 0;
  const char* uk_name = nullptr;
  ListEntry<uma_keg> uk_link;
};
static_assert(std::is_standard_layout_v<KegWords>);

// Of which uk_domain[] is an array behind the keg, for D programs.
struct DomainWords {
  std::uint64_t ud_pages = 0;
  std::uint64_t ud_free_items = 0;
  std::uint64_t ud_free_slabs = 0;
};
static_assert(std::is_standard_layout_v<DomainWords>);

// What D programs know as struct uma_zone; the counters lie behind it.
inline constexpr std::size_t kZoneShown = offsetof(ZoneWords, counters);

// The lists of a machine's zones, and the simulated addresses of what is shown. A place that was
// given back is the next one to be taken, as an item of the kernel's zone of zones is.
struct ShownZones {
  ListHead<uma_keg> uma_kegs;         // newest first; guarded by Vm::zones_mutex
  ListHead<uma_zone> uma_cachezones;  // ditto

  std::mutex mutex;  // guards the rest
  struct Places {
    std::uint64_t made = 0;
    std::vector<std::uint64_t> free;
  };
  Places zones, kegs;
  // Each text once, in blocks of pages.
  std::map<std::string, const char*, std::less<>> texts;
  std::vector<std::unique_ptr<char[]>> blocks;
  std::size_t block_size = 0, block_used = 0;  // of the last one
  std::uint64_t text_pages = 0;
};

}  // namespace dtmalloc
