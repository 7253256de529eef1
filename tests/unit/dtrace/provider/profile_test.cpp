// SPDX-License-Identifier: BSD-2-Clause
// Which names make a probe of the provider profile.
#include "dtrace/provider/profile.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::dtrace {
namespace {

// REQ: DTRACE-73
TEST(ProfileInterval, PrefixDigitsSuffix) {
  struct Row {
    const char* name;
    std::uint64_t ns;
    bool every_cpu;
  };
  constexpr Row kRows[] = {
      {"tick-1sec", 1000000000, false},     {"tick-1s", 1000000000, false},
      {"tick-5", 200000000, false},         {"tick-1000", 1000000, false},
      {"tick-5000", 200000, false},         {"tick-200us", 200000, false},
      {"tick-37MS", 37000000, false},       {"tick-2min", 120000000000, false},
      {"tick-1day", 86400000000000, false}, {"profile-97", 10309278, true},
      {"profile-97hz", 10309278, true},
  };
  for (const Row& row : kRows) {
    bool every_cpu = !row.every_cpu;
    EXPECT_EQ(profile_interval(row.name, &every_cpu), row.ns) << row.name;
    EXPECT_EQ(every_cpu, row.every_cpu) << row.name;
  }
  bool every_cpu = false;
  for (const char* name :
       {"tick-", "tick-0", "tick-5001", "tick-199us", "tick-1fortnight", "tick-1.5s", "tock-1",
        "profile-", "tick-123456789s", "tick-999999999d", "tick-1 sec", ""}) {
    EXPECT_EQ(profile_interval(name, &every_cpu), 0u) << name;
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
