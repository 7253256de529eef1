// SPDX-License-Identifier: BSD-2-Clause
// The suffixes of rates.
#include "dtrace/core/time_unit.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace dtmalloc::dtrace {

std::uint64_t time_unit(std::string_view suffix) {
  struct Unit {
    std::string_view name;
    std::uint64_t ns;
  };
  static constexpr std::uint64_t kSecond = 1000000000;
  static constexpr Unit kUnits[] = {
      {"ns", 1},
      {"nsec", 1},
      {"us", 1000},
      {"usec", 1000},
      {"ms", 1000000},
      {"msec", 1000000},
      {"s", kSecond},
      {"sec", kSecond},
      {"m", 60 * kSecond},
      {"min", 60 * kSecond},
      {"h", 3600 * kSecond},
      {"hour", 3600 * kSecond},
      {"d", 86400 * kSecond},
      {"day", 86400 * kSecond},
  };
  std::string lower(suffix);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Unit& unit : kUnits)
    if (unit.name == lower) return unit.ns;
  return 0;
}

}  // namespace dtmalloc::dtrace
