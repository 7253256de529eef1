// SPDX-License-Identifier: BSD-2-Clause
// aggpack, agghist, aggzoom and encoding: spec/dtrace.md 15.4.
#include <gtest/gtest.h>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

// An aggregation with one key of text per row.
struct Rows {
  explicit Rows(AggFunction function, bool keyed = true, AggregationDesc desc = {}) {
    table.desc = std::move(desc);
    table.desc.id = 1;
    table.desc.function = function;
    if (keyed) {
      ValueDesc key;
      key.by_ref = key.is_string = true;
      key.size = 256;
      table.desc.keys.push_back(key);
    }
    table.spec = AggSpec::of(table.desc);
    table.zero.assign(table.spec.words, 0);
  }
  void add(const std::string& key, const std::vector<std::pair<std::int64_t, std::int64_t>>& data) {
    std::vector<std::int64_t> words = table.zero;
    for (const auto& [value, count] : data) {
      for (std::int64_t i = 0; i < std::abs(count); ++i) {
        aggregate_value(table.spec, words.data(), value, count < 0 ? -1 : 1);
      }
    }
    table.elements[table.desc.keys.empty() ? "" : key + '\0'].data = words;
  }
  std::string print(const AggDisplay& display) {
    Options options;
    options.set("aggsortkey", {}, false, false);
    std::string out;
    print_rows(out, {&table}, sorted_rows({&table}, options, 256), {}, display);
    return out;
  }
  AggTable table;
};

constexpr AggDisplay kPack = {.aggpack = true, .encoding = Encoding::ascii};

// REQ: DFUNCS-41
TEST(Packed, QuantizeIsOneLine) {
  Rows rows(AggFunction::quantize);
  rows.add("a", {{1, 1}, {4, 3}});
  rows.add("bb", {{64, 2}});
  EXPECT_EQ(rows.print(kPack),
            "\n"
            "              key  min .---------. max  | count\n"
            "                 a    0 : x x     : 128  | 4\n"
            "                bb    0 :       X : 128  | 2\n");
  EXPECT_EQ(rows.print({.aggpack = true}),
            "\n"
            "              key  min .---------. max  | count\n"
            "                 a    0 : \u2583 \u2586     : 128  | 4\n"
            "                bb    0 :       \u2588 : 128  | 2\n");
}

// REQ: DFUNCS-41
TEST(Packed, NegativeCountsHaveCharactersOfTheirOwn) {
  Rows rows(AggFunction::quantize, false);
  rows.add("", {{1, -1}, {2, -4}});
  EXPECT_EQ(rows.print(kPack),
            "\n"
            "  min .----. max  | count\n"
            "    0 : vV : 4    | -5\n");
}

// REQ: DFUNCS-41
TEST(Packed, LquantizeShowsAllOfItsRange) {
  AggregationDesc desc;
  desc.base = 0;
  desc.limit = 10;
  desc.step = 2;
  Rows rows(AggFunction::lquantize, false, desc);
  rows.add("", {{3, 1}, {11, 1}});
  EXPECT_EQ(rows.print(kPack),
            "\n"
            "     min .-------. max      | count\n"
            "     < 0 :  x   x: >= 10    | 2\n");
}

// REQ: DFUNCS-42
TEST(Packed, HistogramsHaveABarPerElement) {
  Rows rows(AggFunction::sum);
  rows.add("a", {{1, 1}});
  rows.add("b", {{3, 1}});
  EXPECT_EQ(rows.print({.agghist = true}),
            "\n"
            "              key  ------------- Distribution ------------- count    \n"
            "                 a |@@@@@@@@@@                               1        \n"
            "                 b |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n");
  // Others keep their layout.
  Rows average(AggFunction::avg);
  average.add("a", {{1, 1}});
  EXPECT_EQ(average.print({.agghist = true}), average.print({}));
  EXPECT_EQ(average.print({.aggpack = true}), average.print({}));
}

// REQ: DFUNCS-42
TEST(Packed, NumbersAsKeysKeepTheirWidths) {
  Rows rows(AggFunction::count, false);
  ValueDesc key;
  key.size = 4;
  rows.table.desc.keys.push_back(key);
  rows.table.elements[std::string("\5\0\0\0", 4)].data = {2};
  EXPECT_EQ(rows.print({.agghist = true}),
            "\n"
            "      key  ------------- Distribution ------------- count    \n"
            "        5 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        \n");
}

// REQ: DFUNCS-43
TEST(Packed, ZoomFillsTheLargestTo95Percent) {
  Rows rows(AggFunction::quantize, false);
  rows.add("", {{0, 2}, {1, 1}});
  EXPECT_EQ(rows.print({.aggzoom = true}),
            "\n           value  ------------- Distribution ------------- count    \n"
            "              -1 |                                         0        \n"
            "               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   2        \n"
            "               1 |@@@@@@@@@@@@@@@@@@@                      1        \n"
            "               2 |                                         0        \n\n");
}

// REQ: DFUNCS-43
TEST(Packed, Utf8HasEighths) {
  Rows rows(AggFunction::quantize, false);
  rows.add("", {{0, 15}, {1, 1}});
  std::string full;
  for (int i = 0; i < 37; ++i) full += "\u2588";
  EXPECT_EQ(
      rows.print({.encoding = Encoding::utf8}),
      "\n           value  ------------- Distribution ------------- count    \n"
      "              -1 |                                         0        \n"
      "               0 |" +
          full +
          "\u258c   15       \n"
          "               1 |\u2588\u2588\u258c                                      1        \n"
          "               2 |                                         0        \n\n");
  // Bars with negative counts stay as they are.
  Rows negative(AggFunction::quantize, false);
  negative.add("", {{0, -2}, {1, 1}});
  EXPECT_EQ(negative.print({.encoding = Encoding::utf8}), negative.print({}));
}

}  // namespace
}  // namespace dtmalloc::dtrace
