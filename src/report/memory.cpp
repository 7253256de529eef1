// SPDX-License-Identifier: BSD-2-Clause
// Where a machine's memory is: sums, text and JSON. One look cannot tell whether a type grows.

#include <fmt/format.h>

#include <array>
#include <dtmalloc/report/memory.hpp>
#include <utility>

#include "report/table.hpp"

namespace dtmalloc::report {
namespace {

std::int64_t whole(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

std::array<std::pair<const char*, const SlabUse*>, 3> kinds(const MemoryUse& use) {
  return {{{"malloc", &use.malloc_zones}, {"other", &use.other_zones}, {"uma", &use.uma}}};
}

std::string verdict(const MemoryUse& use) {
  const std::string idle = fmt::format(
      "{} bytes are idle in UMA, {} in empty slabs: a reclaim gives back the slabs that are empty "
      "when the buckets are",
      use.idle(), use.empty());
  if (use.not_in_types() < 0)
    return fmt::format("the types count {} bytes more than is in use; {}\n", -use.not_in_types(),
                       idle);
  const std::uint64_t used = use.used();
  const std::uint64_t percent =
      used == 0 ? 0 : (static_cast<std::uint64_t>(use.not_in_types()) * 100 + used / 2) / used;
  return fmt::format("{} of {} bytes in use, {}%, are in no malloc type; {}\n", use.not_in_types(),
                     used, percent, idle);
}

}  // namespace

std::int64_t MemoryUse::neither() const {
  return whole(used()) -
         whole(malloc_zones.bytes + other_zones.bytes + uma.bytes + large + contiguous);
}

std::int64_t MemoryUse::difference() const {
  return malloc_zones.used + whole(large + contiguous) - types;
}

std::uint64_t MemoryUse::idle() const {
  std::uint64_t sum = 0;
  for (const SlabUse* each : {&malloc_zones, &other_zones, &uma}) sum += each->cached + each->free;
  return sum;
}

std::string print_memory(const MemoryUse& use) {
  Table pages({"-Memory", "Bytes"});
  pages.row({"free", std::to_string(use.free)});
  pages.row({"slabs of malloc zones", std::to_string(use.malloc_zones.bytes)});
  pages.row({"slabs of other zones", std::to_string(use.other_zones.bytes)});
  pages.row({"slabs of UMA's own zones", std::to_string(use.uma.bytes)});
  pages.row({"large blocks", std::to_string(use.large)});
  pages.row({"contiguous blocks", std::to_string(use.contiguous)});
  pages.row({"neither", std::to_string(use.neither())});
  pages.row({"Total", std::to_string(use.physical)});
  Table slabs({"-Slabs", "Bytes", "Used", "In buckets", "Free", "Overhead", "In empty slabs"});
  for (const auto& [name, slab] : kinds(use))
    slabs.row({name, std::to_string(slab->bytes), std::to_string(slab->used),
               std::to_string(slab->cached), std::to_string(slab->free),
               std::to_string(slab->overhead()), std::to_string(slab->empty)});
  Table types({"-Malloc types", "Bytes"});
  types.row(
      {"in malloc zones, large and contiguous", std::to_string(use.types + use.difference())});
  types.row({"counted by the types", std::to_string(use.types)});
  types.row({"difference", std::to_string(use.difference())});
  return pages.text() + '\n' + slabs.text() + '\n' + types.text() + '\n' + verdict(use);
}

std::string print_memory_json(const MemoryUse& use) {
  std::string slabs;
  for (const auto& [name, slab] : kinds(use))
    slabs += fmt::format(
        R"({}{{"zones":"{}","bytes":{},"used":{},"in-buckets":{},"free":{},"overhead":{},"empty":{}}})",
        slabs.empty() ? "" : ",", name, slab->bytes, slab->used, slab->cached, slab->free,
        slab->overhead(), slab->empty);
  return fmt::format(
      R"({{"memory":{{"physical":{},"free":{},"used":{},"slabs":[{}],"large":{},"contiguous":{},)"
      R"("neither":{},"types":{},"difference":{},"not-in-types":{},"idle":{}}}}})"
      "\n",
      use.physical, use.free, use.used(), slabs, use.large, use.contiguous, use.neither(),
      use.types, use.difference(), use.not_in_types(), use.idle());
}

}  // namespace dtmalloc::report
