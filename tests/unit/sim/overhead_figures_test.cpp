// SPDX-License-Identifier: BSD-2-Clause
// The arithmetic of `dtmalloc overhead` on fixed figures.
#include "overhead_figures.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace dtmalloc::sim {
namespace {

std::vector<double> numbers(int from, int to) {
  std::vector<double> result(static_cast<std::size_t>(to - from + 1));
  std::iota(result.begin(), result.end(), from);
  return result;
}

TEST(OverheadFigures, QuantilesLieBetweenTheValues) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.25), 7);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(quantile({4, 1, 3, 2, 5}, 0.25), 2);
  EXPECT_EQ(quantile({4, 1, 3, 2, 5}, 0), 1);
  EXPECT_EQ(quantile({4, 1, 3, 2, 5}, 1), 5);
}

// REQ: OVERHEAD-05
TEST(OverheadFigures, AMedianHasBoundsByOrderStatistics) {
  const Estimate none = estimate({});
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 0);
  const Estimate few = estimate({5, 1, 3});
  EXPECT_EQ(few.value, 3);
  EXPECT_EQ(few.low, 1);
  EXPECT_EQ(few.high, 5);
  // Of 100 values: rank (100 - 1.96 * 10) / 2, so the 40th from each end: 96.5 % of all samples
  // have the median in between (binomial), of the 41st 94.3 %.
  const Estimate many = estimate(numbers(1, 100));
  EXPECT_EQ(many.value, 50.5);
  EXPECT_EQ(many.low, 40);
  EXPECT_EQ(many.high, 61);
  // Outliers on one side do not move it far.
  std::vector<double> skewed = numbers(1, 100);
  for (std::size_t i = 90; i < 100; ++i) skewed[i] = 1e9;
  EXPECT_EQ(estimate(skewed).value, 50.5);
  EXPECT_EQ(estimate(skewed).high, 61);
}

// REQ: OVERHEAD-05
TEST(OverheadFigures, WhatIsKnownOfADifference) {
  EXPECT_EQ(certainty({2, 1.9, 2.1}), Certainty::clear);
  EXPECT_EQ(certainty({-2, -2.1, -1.9}), Certainty::clear);
  EXPECT_EQ(certainty({2, 1, 3}), Certainty::vague);
  EXPECT_EQ(certainty({2, -0.1, 3}), Certainty::noise);
  EXPECT_EQ(certainty({0, 0, 0}), Certainty::noise);
  EXPECT_EQ(certainty({-1, -3, 0}), Certainty::noise);
}

// REQ: OVERHEAD-06
TEST(OverheadFigures, QuietRounds) {
  // First quartile 100: up to 110 is quiet.
  EXPECT_EQ(quiet_rounds({100, 100, 109, 111, 100, 500}), (std::vector<std::size_t>{0, 1, 2, 4}));
  EXPECT_TRUE(quiet_rounds({}).empty());
  EXPECT_EQ(spread_percent({100, 100, 100, 100}), 0);
  EXPECT_EQ(spread_percent({1, 2, 3, 4, 5}), (4.0 - 2.0) / 3.0 * 100);
  EXPECT_FALSE(is_noisy(100, 60, 5));
  EXPECT_TRUE(is_noisy(100, 49, 5));
  EXPECT_TRUE(is_noisy(4, 4, 0));
  EXPECT_TRUE(is_noisy(100, 60, 21));
}

TEST(OverheadFigures, SharesAddUp) {
  EXPECT_EQ(shares({1, 3}), (std::vector<double>{25, 75}));
  EXPECT_EQ(shares({-1, 3, 1}), (std::vector<double>{0, 75, 25}));
  EXPECT_EQ(shares({0, -2}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(shares({}).empty());
}

// REQ: OVERHEAD-07
TEST(OverheadFigures, Rates) {
  // 4 MiB, 32 bytes a record, read every second: 131072 records a second.
  EXPECT_EQ(fills_at(std::size_t{4} << 20, 32, 1000000000), 131072);
  EXPECT_EQ(fills_at(1000, 10, 100000000), 1000);
  EXPECT_FALSE(fills_at(1000, 0, 1000000000));
  EXPECT_FALSE(fills_at(1000, 10, 0));
  EXPECT_EQ(elements_that_fit(1000, 48), 20u);
  EXPECT_FALSE(elements_that_fit(1000, 0));
  // 10 ns of each of a million operations a second: a hundredth of a CPU.
  EXPECT_DOUBLE_EQ(cpu_percent(10, 1e6), 1);
  EXPECT_DOUBLE_EQ(per_second(50, 1e9), 50);
  EXPECT_EQ(per_second(50, 0), 0);
}

}  // namespace
}  // namespace dtmalloc::sim
