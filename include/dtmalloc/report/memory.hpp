// SPDX-License-Identifier: BSD-2-Clause
// Where a machine's memory is: from its pages down to what the malloc types count.
//
// Example:
//   report::MemoryUse use = report::take_memory(kernel);
//   std::cout << report::print_memory(use);
//   use.used() == use.types + use.not_in_types();              // exact
//
// Units:         bytes.
// Errors:        none.
// Thread safety: values; take_memory() may run beside allocating threads, whose changes meanwhile
//                then stand in neither().
// Source:        sim/README.md, "Reports".
#pragma once

#include <cstdint>
#include <string>

namespace dtmalloc {
class Kernel;
}

namespace dtmalloc::report {

// Slabs of one kind of zones.
struct SlabUse {
  std::uint64_t bytes = 0;
  std::int64_t used = 0;     // items that are handed out; below 0: some were freed twice
  std::uint64_t cached = 0;  // items in buckets
  std::uint64_t free = 0;    // items in slabs
  std::uint64_t empty = 0;   // whole slabs without an item in use or in a bucket
  // Headers, and what no item fits into.
  std::uint64_t overhead() const {
    return bytes - static_cast<std::uint64_t>(used) - cached - free;
  }
};

struct MemoryUse {
  std::uint64_t physical = 0, free = 0;
  SlabUse malloc_zones, other_zones, uma;  // uma: UMA's own, buckets and slab headers
  std::uint64_t large = 0, contiguous = 0;
  std::int64_t types = 0;  // what all malloc types count
  std::uint64_t used() const { return physical - free; }
  // Blocks of memguard(9), and zones that were destroyed with items out.
  std::int64_t neither() const;
  // What blocks occupy beyond what the types count; below 0: history, frees under other types.
  std::int64_t difference() const;
  std::int64_t not_in_types() const { return static_cast<std::int64_t>(used()) - types; }
  // Items in buckets and slabs: a reclaim gives back the slabs without any other.
  std::uint64_t idle() const;
  std::uint64_t empty() const { return malloc_zones.empty + other_zones.empty + uma.empty; }
};
MemoryUse take_memory(Kernel& kernel);

std::string print_memory(const MemoryUse& use);
std::string print_memory_json(const MemoryUse& use);

}  // namespace dtmalloc::report
