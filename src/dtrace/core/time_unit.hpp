// SPDX-License-Identifier: BSD-2-Clause
// The suffixes of rates and of profile's probe names (spec/dtrace.md 19 and 22.2), hz aside.
#pragma once

#include <cstdint>
#include <string_view>

namespace dtmalloc::dtrace {

// Nanoseconds of a unit ("ms", "MIN", ...), in any case; 0: there is no such unit.
std::uint64_t time_unit(std::string_view suffix);

}  // namespace dtmalloc::dtrace
