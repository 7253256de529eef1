// SPDX-License-Identifier: BSD-2-Clause
// The part of UMA's per-CPU caches that malloc(9)'s hot path touches: see dtmalloc/kern/inline.hpp.
//
// Example:
//   bool hit = cache.top != cache.base;
//
// Units:         pointers; uz_size in bytes.
// Errors:        none.
// Thread safety: the owner's of the CPU, inside its critical section.
// Source:        sys/vm/uma_int.h (struct uma_cache).
#pragma once

#include <cstdint>

namespace dtmalloc {

// The line of a CPU's share of a zone that a hit touches: the alloc bucket as three pointers into
// its array (none: all null), so that a pop does not wait for a count.
struct HotCache {
  void** top = nullptr;   // one past the last item
  void** base = nullptr;  // the first
  void** end = nullptr;   // one past the room
  std::uint64_t uc_allocs = 0;
  std::uint64_t uz_size = 0;
  std::uint64_t mask_bit = 0;  // of mts_size, for malloc zones
  std::int64_t zindx = -1;     // class index, for malloc zones
  std::uint64_t spare = 0;
};
static_assert(sizeof(HotCache) == 64);

}  // namespace dtmalloc
