// SPDX-License-Identifier: BSD-2-Clause
#include "dtrace/core/time_unit.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::dtrace {
namespace {

TEST(TimeUnit, KnowsTheSuffixesInAnyCase) {
  EXPECT_EQ(time_unit("ns"), 1u);
  EXPECT_EQ(time_unit("usec"), 1000u);
  EXPECT_EQ(time_unit("MS"), 1000000u);
  EXPECT_EQ(time_unit("s"), 1000000000u);
  EXPECT_EQ(time_unit("min"), 60000000000u);
  EXPECT_EQ(time_unit("Hour"), 3600000000000u);
  EXPECT_EQ(time_unit("d"), 86400000000000u);
}

TEST(TimeUnit, RefusesTheRest) {
  EXPECT_EQ(time_unit(""), 0u);
  EXPECT_EQ(time_unit("hz"), 0u);
  EXPECT_EQ(time_unit("week"), 0u);
}

}  // namespace
}  // namespace dtmalloc::dtrace
