// SPDX-License-Identifier: BSD-2-Clause
// What the machine of `dtmalloc dtrace` does by itself: a workload without an end.

#pragma once

#include <dtmalloc/workload/workload.hpp>
#include <optional>
#include <string>

namespace dtmalloc::sim {

// For a machine with this many CPUs.
std::optional<workload::Workload> live_workload(int cpus);
// Its text, a workload as any other.
std::string live_workload_text(int cpus);

}  // namespace dtmalloc::sim
