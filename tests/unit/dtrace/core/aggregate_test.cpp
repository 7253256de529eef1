// SPDX-License-Identifier: BSD-2-Clause
// Aggregating functions and the per-CPU hash.
#include "dtrace/core/aggregate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

namespace dtmalloc::dtrace {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

AggSpec spec_of(AggFunction function) {
  AggregationDesc desc;
  desc.id = 1;
  desc.function = function;
  return AggSpec::of(desc);
}

std::vector<std::int64_t> add_up(const AggSpec& spec, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> data(spec.words);
  aggregate_start(spec, data.data());
  for (const std::int64_t value : values) aggregate_value(spec, data.data(), value, 1);
  return data;
}

// REQ: DTRACE-30
TEST(Aggregate, CountSumMinMaxAvgStddev) {
  const std::vector<std::int64_t> values = {5, -3, 9};
  EXPECT_EQ(add_up(spec_of(AggFunction::count), values)[0], 3);
  EXPECT_EQ(add_up(spec_of(AggFunction::sum), values)[0], 11);
  EXPECT_EQ(add_up(spec_of(AggFunction::min), values)[0], -3);
  EXPECT_EQ(add_up(spec_of(AggFunction::max), values)[0], 9);
  EXPECT_EQ(add_up(spec_of(AggFunction::avg), values), (std::vector<std::int64_t>{3, 11}));
  EXPECT_EQ(add_up(spec_of(AggFunction::stddev), values),
            (std::vector<std::int64_t>{3, 11, 25 + 9 + 81, 0}));
  EXPECT_EQ(add_up(spec_of(AggFunction::min), {})[0], kMax);
  EXPECT_EQ(add_up(spec_of(AggFunction::max), {})[0], kMin);
  // A sum wraps.
  EXPECT_EQ(add_up(spec_of(AggFunction::sum), {kMax, 1})[0], kMin);
  // Squares need 128 bits: (2^40)^2 = 2^80.
  EXPECT_EQ(add_up(spec_of(AggFunction::stddev), {std::int64_t{1} << 40}),
            (std::vector<std::int64_t>{1, std::int64_t{1} << 40, 0, 1 << 16}));
}

// REQ: DTRACE-31
TEST(Aggregate, QuantizeBuckets) {
  struct Row {
    std::int64_t value;
    int bucket;
  };
  constexpr Row kRows[] = {{0, 63},  {1, 64},     {2, 65},   {3, 65},       {4, 66},
                           {7, 66},  {8, 67},     {-1, 62},  {-2, 61},      {-3, 61},
                           {-4, 60}, {kMax, 126}, {kMin, 0}, {1 << 20, 84}, {(1 << 20) - 1, 83}};
  for (const Row& row : kRows) EXPECT_EQ(quantize_bucket(row.value), row.bucket) << row.value;
  EXPECT_EQ(quantize_bucket_value(63), 0);
  EXPECT_EQ(quantize_bucket_value(64), 1);
  EXPECT_EQ(quantize_bucket_value(126), std::int64_t{1} << 62);
  EXPECT_EQ(quantize_bucket_value(62), -1);
  EXPECT_EQ(quantize_bucket_value(0), -(std::int64_t{1} << 62));
  EXPECT_EQ(spec_of(AggFunction::quantize).words, 127u);
}

// REQ: DTRACE-32
TEST(Aggregate, LquantizeBuckets) {
  AggregationDesc desc;
  desc.function = AggFunction::lquantize;
  desc.base = 0;
  desc.limit = 2048;
  desc.step = 64;
  AggSpec spec = AggSpec::of(desc);
  EXPECT_EQ(spec.levels, 32u);
  EXPECT_EQ(spec.words, 34u);
  EXPECT_EQ(lquantize_bucket(spec, -1), 0u);
  EXPECT_EQ(lquantize_bucket(spec, 0), 1u);
  EXPECT_EQ(lquantize_bucket(spec, 63), 1u);
  EXPECT_EQ(lquantize_bucket(spec, 64), 2u);
  EXPECT_EQ(lquantize_bucket(spec, 2047), 32u);
  EXPECT_EQ(lquantize_bucket(spec, 2048), 33u);
  // Cut to 32 bits.
  EXPECT_EQ(lquantize_bucket(spec, std::int64_t{1} << 32), 1u);
  // A limit between two steps: the last level ends before it.
  desc.limit = 10;
  desc.step = 4;
  spec = AggSpec::of(desc);
  EXPECT_EQ(spec.levels, 2u);
  EXPECT_EQ(lquantize_bucket(spec, 8), 3u);
}

// REQ: DTRACE-33
TEST(Aggregate, LlquantizeBuckets) {
  AggregationDesc desc;
  desc.function = AggFunction::llquantize;
  desc.factor = 10;
  desc.low = 0;
  desc.high = 2;
  desc.nsteps = 20;
  const AggSpec spec = AggSpec::of(desc);
  const std::vector<std::int64_t> bounds = llquantize_bounds(spec);
  // 1..9 by 1, 10..95 by 5, 100..950 by 50, 1000.
  ASSERT_EQ(bounds.size(), 9u + 18u + 18u + 1u);
  EXPECT_EQ(bounds[0], 1);
  EXPECT_EQ(bounds[8], 9);
  EXPECT_EQ(bounds[9], 10);
  EXPECT_EQ(bounds[10], 15);
  EXPECT_EQ(bounds[27], 100);
  EXPECT_EQ(bounds.back(), 1000);
  EXPECT_EQ(llquantize_bucket(spec, 0), 0u);
  EXPECT_EQ(llquantize_bucket(spec, 1), 1u);
  EXPECT_EQ(llquantize_bucket(spec, 14), 10u);
  EXPECT_EQ(llquantize_bucket(spec, 1000), 46u);
  EXPECT_EQ(llquantize_bucket(spec, kMax), 46u);
  EXPECT_EQ(spec.words, 47u);
  // Every bound opens its own bucket.
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    EXPECT_EQ(llquantize_bucket(spec, bounds[i]), i + 1);
    EXPECT_EQ(llquantize_bucket(spec, bounds[i] - 1), i);
  }
}

// REQ: DTRACE-34
TEST(Aggregate, CombiningDoesNotDependOnTheOrder) {
  const std::vector<std::vector<std::int64_t>> columns = {{1, -5, 700}, {3, 3}, {}, {-9, 12345}};
  for (const AggFunction function :
       {AggFunction::count, AggFunction::sum, AggFunction::min, AggFunction::max, AggFunction::avg,
        AggFunction::stddev, AggFunction::quantize}) {
    const AggSpec spec = spec_of(function);
    std::vector<std::int64_t> all;
    for (const auto& column : columns) all.insert(all.end(), column.begin(), column.end());
    const std::vector<std::int64_t> expected = add_up(spec, all);
    std::vector<std::size_t> order = {0, 1, 2, 3};
    do {
      std::vector<std::int64_t> merged = add_up(spec, columns[order[0]]);
      for (std::size_t i = 1; i < order.size(); ++i) {
        aggregate_combine(spec, merged.data(), add_up(spec, columns[order[i]]).data());
      }
      EXPECT_EQ(merged, expected) << to_string(function);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

std::map<std::string, std::int64_t> contents(const AggBuffer& buffer) {
  std::map<std::string, std::int64_t> result;
  buffer.visit([&](const AggBuffer::Element& element) {
    result[std::string(reinterpret_cast<const char*>(element.key.data()), element.key.size())] =
        element.data[0];
  });
  return result;
}

void count(AggBuffer& buffer, const AggSpec& spec, const std::string& key) {
  std::int64_t* data = buffer.find(spec, reinterpret_cast<const std::byte*>(key.data()),
                                   static_cast<std::uint32_t>(key.size()));
  if (data != nullptr) aggregate_value(spec, data, 0, 1);
}

TEST(AggBuffer, SnapshotsHoldOnlyIncrements) {
  AggBuffer buffer;
  ASSERT_TRUE(buffer.reserve(4096));
  const AggSpec spec = spec_of(AggFunction::count);
  count(buffer, spec, "a");
  count(buffer, spec, "bb");
  count(buffer, spec, "a");
  buffer.exchange();
  EXPECT_EQ(contents(buffer), (std::map<std::string, std::int64_t>{{"a", 2}, {"bb", 1}}));
  count(buffer, spec, "a");
  buffer.exchange();
  EXPECT_EQ(contents(buffer), (std::map<std::string, std::int64_t>{{"a", 1}}));
  buffer.exchange();
  EXPECT_TRUE(contents(buffer).empty());
  EXPECT_EQ(buffer.drops, 0u);
}

// REQ: DTRACE-35
TEST(AggBuffer, DropsNewElementsWhenItIsFull) {
  AggBuffer buffer;
  ASSERT_TRUE(buffer.reserve(1024));
  const AggSpec spec = spec_of(AggFunction::count);
  for (int i = 0; i < 100; ++i) count(buffer, spec, "key" + std::to_string(i));
  EXPECT_GT(buffer.drops, 0u);
  const std::uint64_t drops = buffer.drops;
  count(buffer, spec, "key0");  // an old one still counts
  EXPECT_EQ(buffer.drops, drops);
  buffer.exchange();
  const auto kept = contents(buffer);
  EXPECT_EQ(kept.size() + drops, 100u);
  EXPECT_EQ(kept.at("key0"), 2);
}

TEST(AggBuffer, KeepsAggregationsApart) {
  AggBuffer buffer;
  ASSERT_TRUE(buffer.reserve(4096));
  AggSpec one = spec_of(AggFunction::count);
  AggSpec two = one;
  two.id = 2;
  count(buffer, one, "a");
  count(buffer, two, "a");
  buffer.exchange();
  int elements = 0;
  buffer.visit([&](const AggBuffer::Element& element) {
    ++elements;
    EXPECT_EQ(element.data[0], 1);
  });
  EXPECT_EQ(elements, 2);
}

TEST(AggBuffer, AHintFindsWhatASearchFinds) {
  AggBuffer buffer;
  ASSERT_TRUE(buffer.reserve(1 << 16));
  AggregationDesc desc;
  desc.id = 1;
  const AggSpec spec = AggSpec::of(desc);
  AggBuffer::Hint hint;
  const auto find = [&](const char* key, AggBuffer::Hint* with) {
    return buffer.find(spec, reinterpret_cast<const std::byte*>(key), 2, with);
  };
  for (int round = 0; round < 3; ++round) {
    std::int64_t* a = find("a", &hint);
    EXPECT_EQ(*a, 0) << "an element of the half before";
    *a = 1;
    EXPECT_EQ(find("a", &hint), a);
    EXPECT_EQ(find("a", nullptr), a);
    std::int64_t* b = find("b", &hint);
    EXPECT_NE(b, a);
    EXPECT_EQ(find("b", nullptr), b);
    EXPECT_EQ(find("a", &hint), a);
    buffer.exchange();
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
