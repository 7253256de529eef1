// SPDX-License-Identifier: BSD-2-Clause
// The merged aggregations: order, clear, trunc, joined rows.
#include "dtrace/consume/aggregation.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace dtmalloc::dtrace {
namespace {

AggregationDesc desc_of(AggFunction function, std::uint32_t id, std::vector<ValueDesc> keys) {
  AggregationDesc desc;
  desc.id = id;
  desc.function = function;
  desc.keys = std::move(keys);
  return desc;
}

constexpr ValueDesc kString{.size = 256, .by_ref = true, .is_string = true};
constexpr ValueDesc kInt{.size = 4};
constexpr ValueDesc kLong{.size = 8};

std::string text_key(const std::string& text) { return text + '\0'; }
template <typename T>
std::string number_key(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

class AggregationTest : public ::testing::Test {
 protected:
  void add(std::uint32_t id, const std::string& key, std::vector<std::int64_t> data) {
    store.merge({id, std::as_bytes(std::span(key)), data.data()});
  }
  // Keys in printing order, the first element of each as text.
  std::vector<std::string> order(std::vector<std::uint32_t> ids = {1}) {
    std::vector<const AggTable*> tables;
    for (const std::uint32_t id : ids) tables.push_back(store.table(id));
    std::vector<std::string> result;
    for (const AggRow& row : sorted_rows(tables, options, 256)) {
      const KeyPart& part = row.parts.at(0);
      result.push_back(part.desc.is_string ? part.bytes : std::to_string(part.number));
    }
    return result;
  }
  using Names = std::vector<std::string>;
  AggStore store;
  Options options;
};

// REQ: DTRACE-43
TEST_F(AggregationTest, SortsByValueThenKey) {
  store.define({desc_of(AggFunction::sum, 1, {kString})});
  add(1, text_key("b"), {2});
  add(1, text_key("a"), {2});
  add(1, text_key("z"), {-1});
  EXPECT_EQ(order(), (Names{"z", "a", "b"}));
  options.set("aggsortrev", {}, false, false);
  EXPECT_EQ(order(), (Names{"b", "a", "z"}));
  options = Options();
  options.set("aggsortkey", {}, false, false);
  EXPECT_EQ(order(), (Names{"a", "b", "z"}));
}

// REQ: DTRACE-43
TEST_F(AggregationTest, IntegerKeysCompareUnsignedBySize) {
  store.define({desc_of(AggFunction::count, 1, {kInt})});
  add(1, number_key(std::int32_t{-1}), {1});
  add(1, number_key(std::int32_t{5}), {1});
  EXPECT_EQ(order(), (Names{"5", "4294967295"}));
}

// REQ: DTRACE-44
TEST_F(AggregationTest, AggsortkeyposChoosesTheFirstKey) {
  store.define({desc_of(AggFunction::count, 1, {kString, kLong})});
  add(1, text_key("a") + number_key(std::int64_t{2}), {1});
  add(1, text_key("b") + number_key(std::int64_t{1}), {9});
  options.set("aggsortkey", {}, false, false);
  EXPECT_EQ(order(), (Names{"a", "b"}));
  options.set("aggsortkeypos", "1", false, false);
  EXPECT_EQ(order(), (Names{"b", "a"}));
}

// REQ: DTRACE-43
TEST_F(AggregationTest, DistributionsSortByWeightedSum) {
  store.define({desc_of(AggFunction::quantize, 1, {kString})});
  std::vector<std::int64_t> many(kQuantizeBuckets);
  std::vector<std::int64_t> big(kQuantizeBuckets);
  many[quantize_bucket(1)] = 100;
  big[quantize_bucket(1024)] = 1;
  add(1, text_key("big"), big);
  add(1, text_key("many"), many);
  EXPECT_EQ(order(), (Names{"many", "big"}));
}

// REQ: DTRACE-45
TEST_F(AggregationTest, JoinedRowsBundleByKeyAndMissingIsZero) {
  store.define(
      {desc_of(AggFunction::count, 1, {kString}), desc_of(AggFunction::sum, 2, {kString})});
  add(1, text_key("a"), {5});
  add(1, text_key("b"), {1});
  add(2, text_key("c"), {-7});
  EXPECT_EQ(order({1, 2}), (Names{"c", "b", "a"}));
  options.set("aggsortpos", "1", false, false);
  EXPECT_EQ(order({1, 2}), (Names{"c", "b", "a"}));
  const std::vector<const AggTable*> tables = {store.table(1), store.table(2)};
  for (const AggRow& row : sorted_rows(tables, options, 256)) {
    ASSERT_EQ(row.data.size(), 2u);
    if (row.parts[0].bytes == "c") {
      EXPECT_EQ((*row.data[0])[0], 0);
      EXPECT_EQ((*row.data[1])[0], -7);
    }
  }
}

// REQ: DTRACE-46
TEST_F(AggregationTest, ClearKeepsKeysAndLaterSnapshotsAddIncrements) {
  store.define(
      {desc_of(AggFunction::count, 1, {kString}), desc_of(AggFunction::min, 2, {kString})});
  add(1, text_key("a"), {5});
  add(2, text_key("a"), {3});
  store.clear(1);
  store.clear(2);
  EXPECT_EQ(store.table(1)->elements.at(text_key("a")).data[0], 0);
  add(1, text_key("a"), {2});
  add(2, text_key("a"), {9});
  EXPECT_EQ(store.table(1)->elements.at(text_key("a")).data[0], 2);
  EXPECT_EQ(store.table(2)->elements.at(text_key("a")).data[0], 9);
}

// REQ: DTRACE-47
TEST_F(AggregationTest, TruncKeepsTheLargestOrTheSmallest) {
  const auto fill = [this] {
    store = AggStore();
    store.define({desc_of(AggFunction::sum, 1, {kLong})});
    for (std::int64_t i = 1; i <= 4; ++i) add(1, number_key(i), {i == 4 ? 3 : i});
  };
  fill();
  store.trunc(1, 1);
  EXPECT_EQ(order(), (Names{"4"}));  // of the ties the larger key
  fill();
  store.trunc(1, -2);
  EXPECT_EQ(order(), (Names{"1", "2"}));
  fill();
  store.trunc(1, 0);
  EXPECT_TRUE(store.table(1)->elements.empty());
  fill();
  store.trunc(1, 9);
  EXPECT_EQ(order().size(), 4u);
}

TEST_F(AggregationTest, KeysComeApartAgain) {
  const AggregationDesc desc = desc_of(AggFunction::count, 1, {kString, kInt, kString});
  const std::string key = text_key("one") + number_key(std::int32_t{-2}) + text_key("");
  const std::vector<KeyPart> parts = split_key(desc, key, 256);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].bytes, "one");
  EXPECT_EQ(parts[1].number, 0xfffffffeu);
  EXPECT_EQ(parts[2].bytes, "");
}

TEST(Stddev, IsAnIntegerRoot) {
  // 2 and 6: mean 4, mean of squares 20, 20 - 16 = 4.
  EXPECT_EQ(stddev_value({2, 8, 40, 0}, 1), 2u);
  EXPECT_EQ(stddev_value({0, 0, 0, 0}, 1), 0u);
  EXPECT_EQ(stddev_value({1, -5, 25, 0}, 1), 0u);
}

// REQ: DTRACE-30
TEST(AggregationValues, TheQuotientThatDoesNotFitWraps) {
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const auto spec = AggSpec::of(desc_of(AggFunction::avg, 1, {}));
  EXPECT_EQ(element_value(spec, {1, lowest}, ~std::uint64_t{0}), lowest);
  EXPECT_EQ(element_value(spec, {2, 10}, ~std::uint64_t{0}), -5);
  EXPECT_EQ(stddev_value({1, lowest, 0, 1ll << 62}, ~std::uint64_t{0}), 0u);
}

// REQ: DTRACE-45
TEST_F(AggregationTest, ASortPositionThatDoesNotExistIsTheFirst) {
  store.define({desc_of(AggFunction::sum, 1, {kString}), desc_of(AggFunction::sum, 2, {kString})});
  for (const std::uint32_t id : {1u, 2u}) {
    add(id, text_key("a"), {id == 1 ? 1 : 2});
    add(id, text_key("b"), {id == 1 ? 2 : 1});
  }
  options.set("aggsortpos", "1", false, false);
  EXPECT_EQ(order({1, 2}), (Names{"b", "a"}));
  for (const char* none : {"2", "3"}) {
    options.set("aggsortpos", none, false, false);
    EXPECT_EQ(order({1, 2}), (Names{"a", "b"})) << none;
  }
}

// REQ: DTRACE-47
TEST_F(AggregationTest, TruncTakesKeysApartAtTheStringSize) {
  // Strings that fill strsize have no NUL.
  constexpr ValueDesc kShort{.size = 2, .by_ref = true, .is_string = true};
  store.define({desc_of(AggFunction::sum, 1, {kShort, kLong})}, 2);
  add(1, "ab" + number_key<std::uint64_t>(256), {1});
  add(1, "ab" + number_key<std::uint64_t>(1), {1});
  // Among ties the larger key is kept: 256, although its first byte is 0.
  store.trunc(1, 1);
  const std::vector<AggRow> rows = sorted_rows({store.table(1)}, options, 2);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].parts.at(1).number, 256u);
}

}  // namespace
}  // namespace dtmalloc::dtrace
