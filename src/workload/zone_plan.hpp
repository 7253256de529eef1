// SPDX-License-Identifier: BSD-2-Clause
// How many items a zone must hand out and take back so that a captured number of them is idle.
#pragma once

#include <cstdint>

namespace dtmalloc::workload {

struct ZonePlan {
  std::uint64_t extra = 0;  // items to take beside those in use, and to give back
  std::uint64_t free = 0;   // what is idle then
};
// On one CPU, for a fresh zone without a limit that its buckets feel. Items come in buckets and
// whole slabs, so `free` is as near to the captured number as these allow.
ZonePlan plan_zone(std::uint64_t used, std::uint64_t free, std::uint64_t size, int align);

}  // namespace dtmalloc::workload
