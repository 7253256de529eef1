// SPDX-License-Identifier: BSD-2-Clause
// The default layout of aggregations: spec/dtrace.md 15.4.
#include <gtest/gtest.h>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

AggTable table_of(AggFunction function, AggregationDesc desc = {}) {
  AggTable table;
  table.desc = std::move(desc);
  table.desc.id = 1;
  table.desc.function = function;
  table.spec = AggSpec::of(table.desc);
  table.zero.assign(table.spec.words, 0);
  return table;
}

std::string distribution(const AggTable& table, const std::vector<std::int64_t>& data) {
  std::string out;
  print_distribution(out, table, data);
  return out;
}

std::string quantized(const std::vector<std::pair<std::int64_t, std::int64_t>>& values,
                      std::uint64_t normal = 1) {
  AggTable table = table_of(AggFunction::quantize);
  table.normal = normal;
  std::vector<std::int64_t> data = table.zero;
  for (const auto& [value, count] : values) data[quantize_bucket(value)] += count;
  return distribution(table, data);
}

const std::string kHeading =
    "\n           value  ------------- Distribution ------------- count    \n";

// REQ: DTRACE-36
TEST(Distribution, QuantizeHasAnEmptyBucketOnBothSides) {
  EXPECT_EQ(quantized({{1, 1}, {2, 2}}),
            kHeading +
                "               0 |                                         0        \n"
                "               1 |@@@@@@@@@@@@@                            1        \n"
                "               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        \n"
                "               4 |                                         0        \n");
}

// REQ: DTRACE-36
TEST(Distribution, QuantizeWithoutDataShowsThreeBuckets) {
  EXPECT_EQ(quantized({}),
            kHeading +
                "              -1 |                                         0        \n"
                "               0 |                                         0        \n"
                "               1 |                                         0        \n");
}

// REQ: DTRACE-37
TEST(Distribution, BarsRoundHalfUp) {
  // 1 of 80 is half a column.
  EXPECT_EQ(quantized({{0, 79}, {1, 1}}),
            kHeading +
                "              -1 |                                         0        \n"
                "               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 79       \n"
                "               1 |@                                        1        \n"
                "               2 |                                         0        \n");
}

// REQ: DTRACE-38
TEST(Distribution, NegativeCountsGrowToTheLeft) {
  EXPECT_EQ(quantized({{0, -3}}),
            kHeading +
                "              -1                                         | 0        \n"
                "               0 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -3       \n"
                "               1                                         | 0        \n");
  EXPECT_EQ(quantized({{0, -1}, {1, 1}}),
            kHeading +
                "              -1                     |                     0        \n"
                "               0           @@@@@@@@@@|                     -1       \n"
                "               1                     |@@@@@@@@@@           1        \n"
                "               2                     |                     0        \n");
}

// REQ: DTRACE-39
TEST(Distribution, NormalisationChangesCountsNotBars) {
  EXPECT_EQ(quantized({{1, 30}}, 10),
            kHeading +
                "               0 |                                         0        \n"
                "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 3        \n"
                "               2 |                                         0        \n");
}

// REQ: DTRACE-36
TEST(Distribution, LquantizeLabelsItsOuterBuckets) {
  AggregationDesc desc;
  desc.base = 0;
  desc.limit = 10;
  desc.step = 5;
  const AggTable table = table_of(AggFunction::lquantize, desc);
  EXPECT_EQ(distribution(table, {1, 0, 1, 2}),
            kHeading +
                "             < 0 |@@@@@@@@@@                               1        \n"
                "               0 |                                         0        \n"
                "               5 |@@@@@@@@@@                               1        \n"
                "           >= 10 |@@@@@@@@@@@@@@@@@@@@                     2        \n");
  // No data: its first three.
  EXPECT_EQ(distribution(table, table.zero),
            kHeading +
                "             < 0 |                                         0        \n"
                "               0 |                                         0        \n"
                "               5 |                                         0        \n");
}

// REQ: DTRACE-36
TEST(Distribution, LlquantizeLabelsItsOuterBuckets) {
  AggregationDesc desc;
  desc.factor = 10;
  desc.low = 0;
  desc.high = 1;
  desc.nsteps = 10;
  const AggTable table = table_of(AggFunction::llquantize, desc);
  std::vector<std::int64_t> data = table.zero;
  data.front() = 1;
  EXPECT_EQ(distribution(table, data),
            kHeading +
                "             < 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
                "               1 |                                         0        \n");
  data.front() = 0;
  data.back() = 1;
  EXPECT_EQ(distribution(table, data),
            kHeading +
                "              90 |                                         0        \n"
                "          >= 100 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n");
  EXPECT_EQ(distribution(table, table.zero),
            kHeading +
                "             < 1 |                                         0        \n"
                "               1 |                                         0        \n");
}

std::string value(AggFunction function, const std::vector<std::int64_t>& data,
                  std::uint64_t normal = 1) {
  AggTable table = table_of(function);
  table.normal = normal;
  std::string out;
  print_aggregation_value(out, table, data);
  return out;
}

// REQ: DTRACE-40
TEST(AggregationLayout, NumbersInSixteenColumns) {
  EXPECT_EQ(value(AggFunction::count, {648}), "              648");
  EXPECT_EQ(value(AggFunction::sum, {-3}), "               -3");
  EXPECT_EQ(value(AggFunction::avg, {2, -20}), "              -10");
  EXPECT_EQ(value(AggFunction::avg, {0, 0}), "                0");
  EXPECT_EQ(value(AggFunction::stddev, {2, 8, 40, 0}), "                2");
}

// REQ: DTRACE-41
TEST(AggregationLayout, NormalisedUnsigned) {
  EXPECT_EQ(value(AggFunction::sum, {1000}, 10), "              100");
  EXPECT_EQ(value(AggFunction::sum, {-1000}, 1000), " 18446744073709550");
  EXPECT_EQ(value(AggFunction::avg, {2, 2000}, 10), "              100");
  EXPECT_EQ(value(AggFunction::stddev, {2, 80, 4000, 0}, 10), "                2");
}

// The table of dtrace_dtmalloc(4).
// REQ: DTRACE-42
TEST(AggregationLayout, RowsOfKeysAndValues) {
  AggTable table = table_of(AggFunction::count);
  table.desc.keys.push_back({.size = 256, .by_ref = true, .is_string = true});
  table.elements[std::string("temp\0", 5)].data = {36};
  table.elements[std::string("CAM CCB\0", 8)].data = {1};
  table.elements[std::string("80211node\0", 10)].data = {1};
  const std::vector<const AggTable*> tables = {&table};
  std::string out;
  print_rows(out, tables, sorted_rows(tables, Options(), 256));
  EXPECT_EQ(out,
            "  80211node                                                         1\n"
            "  CAM CCB                                                           1\n"
            "  temp                                                             36\n");
}

}  // namespace
}  // namespace dtmalloc::dtrace
