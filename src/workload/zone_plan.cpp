// SPDX-License-Identifier: BSD-2-Clause
// How many items a zone must hand out and take back: buckets of items are filled from slabs in
// order, so the number of fills tells the number of slabs.
#include "workload/zone_plan.hpp"

#include <algorithm>

#include "vm/uma_int.hpp"

namespace dtmalloc::workload {

ZonePlan plan_zone(std::uint64_t used, std::uint64_t free, std::uint64_t size, int align) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (used > kMost || free > kMost) return {};
  const std::uint64_t slab = std::max<std::uint64_t>(keg_layout(size, align, false).ipers, 1);
  const std::uint64_t bucket = std::max<std::uint64_t>(bucket_select(size), 1);
  const auto items = [&](std::uint64_t fills) { return (fills * bucket + slab - 1) / slab * slab; };
  const std::uint64_t least = (used + bucket - 1) / bucket, want = used + free;
  // items() grows with the fills: the answer is the last below the wanted number, or the next.
  std::uint64_t fills = std::max(least, want / bucket);
  while (fills > least && items(fills) > want) --fills;
  const auto distance = [&](std::uint64_t n) {
    return items(n) > want ? items(n) - want : want - items(n);
  };
  if (distance(fills + 1) < distance(fills)) ++fills;
  ZonePlan plan;
  plan.free = items(fills) - used;
  if (fills > least) plan.extra = (fills - 1) * bucket + 1 - used;
  return plan;
}

}  // namespace dtmalloc::workload
