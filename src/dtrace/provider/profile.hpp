// SPDX-License-Identifier: BSD-2-Clause
// The provider profile: tick-N on one CPU, profile-N on every CPU.
#pragma once

#include <cstdint>
#include <dtmalloc/dtrace/provider.hpp>
#include <string_view>

namespace dtmalloc::dtrace {

void load_profile(Framework& framework);

// "tick-1sec", "profile-97": the interval in nanoseconds, or 0 for a name that makes no probe.
std::uint64_t profile_interval(std::string_view name, bool* every_cpu);

}  // namespace dtmalloc::dtrace
