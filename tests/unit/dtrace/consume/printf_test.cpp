// SPDX-License-Identifier: BSD-2-Clause
// printf conversions: spec/dtrace.md 14.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

// A value and the storage of its bytes.
struct Recorded {
  Recorded(std::int64_t value, std::uint32_t size, bool is_signed = true) : bytes(size, '\0') {
    std::memcpy(bytes.data(), &value, size);
    desc.size = size;
    desc.is_signed = is_signed;
  }
  explicit Recorded(const std::string& text) : bytes(text) {
    bytes.resize(256);
    desc.size = 256;
    desc.by_ref = desc.is_string = true;
  }
  ValueDesc desc;
  std::string bytes;
};

// One conversion out of its C spelling: "%-5d".
Conversion conversion_of(const char* text) {
  Conversion conversion;
  const char* at = text + 1;
  for (;; ++at) {
    if (*at == '-') {
      conversion.left = true;
    } else if (*at == '+') {
      conversion.plus = true;
    } else if (*at == ' ') {
      conversion.space = true;
    } else if (*at == '#') {
      conversion.alternate = true;
    } else if (*at == '0') {
      conversion.zero = true;
    } else {
      break;
    }
  }
  const auto number = [&](int* value, bool* from_argument) {
    if (*at == '*') {
      *from_argument = true;
      ++at;
    } else if (*at >= '0' && *at <= '9') {
      *value = static_cast<int>(std::strtol(at, const_cast<char**>(&at), 10));
    }
  };
  number(&conversion.width, &conversion.width_arg);
  if (*at == '.') {
    ++at;
    number(&conversion.precision, &conversion.precision_arg);
  }
  conversion.conversion = *at;
  return conversion;
}

std::string formatted(const char* text, const std::vector<Recorded>& values) {
  Format format;
  format.conversions.push_back(conversion_of(text));
  std::vector<Datum> data;
  for (const Recorded& value : values) {
    data.push_back({value.desc, std::as_bytes(std::span(value.bytes))});
  }
  std::string out;
  print_format(out, format, data, {});
  return out;
}

// REQ: DTRACE-14
TEST(Printf, IntegersBySignAndSizeOfTheArgument) {
  EXPECT_EQ(formatted("%d", {{-1, 8}}), "-1");
  EXPECT_EQ(formatted("%d", {{-1, 8, false}}), "18446744073709551615");
  EXPECT_EQ(formatted("%d", {{-1, 4}}), "-1");
  EXPECT_EQ(formatted("%d", {{-1, 4, false}}), "4294967295");
  EXPECT_EQ(formatted("%d", {{-1, 2}}), "-1");
  EXPECT_EQ(formatted("%d", {{-1, 1, false}}), "255");
  EXPECT_EQ(formatted("%i", {{-1, 4, false}}), "-1");
  EXPECT_EQ(formatted("%u", {{-1, 4}}), "4294967295");
  EXPECT_EQ(formatted("%u", {{300, 1, false}}), "44");
  EXPECT_EQ(formatted("%x", {{-1, 4}}), "ffffffff");
  EXPECT_EQ(formatted("%X", {{255, 8}}), "FF");
  EXPECT_EQ(formatted("%o", {{8, 8}}), "10");
  EXPECT_EQ(formatted("%p", {{0x1234abcd, 8, false}}), "1234abcd");
}

// REQ: DTRACE-15
TEST(Printf, FlagsWidthAndPrecision) {
  EXPECT_EQ(formatted("%5d", {{42, 4}}), "   42");
  EXPECT_EQ(formatted("%-5d", {{42, 4}}), "42   ");
  EXPECT_EQ(formatted("%05d", {{42, 4}}), "00042");
  EXPECT_EQ(formatted("%+d", {{42, 4}}), "+42");
  EXPECT_EQ(formatted("% d", {{42, 4}}), " 42");
  EXPECT_EQ(formatted("%#x", {{255, 4}}), "0xff");
  EXPECT_EQ(formatted("%.5d", {{42, 4}}), "00042");
  EXPECT_EQ(formatted("%.2s", {Recorded("abc")}), "ab");
  EXPECT_EQ(formatted("%.0s", {Recorded("abc")}), "abc");  // no precision
  EXPECT_EQ(formatted("%*d", {{4, 4}, {7, 4}}), "   7");
  EXPECT_EQ(formatted("%*d", {{-4, 4}, {7, 4}}), "7   ");
  EXPECT_EQ(formatted("%.*s", {{1, 4}, Recorded("abc")}), "a");
  // As in C: -1 is left-justified in one column, a negative precision is none.
  EXPECT_EQ(formatted("%*s", {{-1, 4}, Recorded("")}), " ");
  EXPECT_EQ(formatted("%*s", {{0, 4}, Recorded("a")}), "a");
  EXPECT_EQ(formatted("%.*s", {{-1, 4}, Recorded("abc")}), "abc");
  const std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(formatted("%*s", {{lowest, 4}, Recorded("a")}).front(), 'a');
}

// REQ: DTRACE-16
TEST(Printf, TextAndCharacters) {
  EXPECT_EQ(formatted("%s", {Recorded("temp")}), "temp");
  EXPECT_EQ(formatted("%8s", {Recorded("temp")}), "    temp");
  EXPECT_EQ(formatted("%s", {Recorded("")}), "");
  EXPECT_EQ(formatted("%S", {Recorded("a\tb\n\x01")}), "a\\tb\\n\\001");
  EXPECT_EQ(formatted("%c", {{'A', 4}}), "A");
  EXPECT_EQ(formatted("%c", {{0, 1}}), std::string(1, '\0'));
  EXPECT_EQ(formatted("%C", {{'\n', 4}}), "\\n");
  EXPECT_EQ(formatted("%a", {{static_cast<std::int64_t>(0xffffffff81000040), 8}}),
            "0xffffffff81000040");
}

// REQ: DTRACE-79
TEST(Printf, PortsAreNumbers) {
  EXPECT_EQ(formatted("%P", {{80, 2, false}}), "80");
  EXPECT_EQ(formatted("%6P", {{-1, 2, false}}), " 65535");
}

// REQ: DTRACE-17
TEST(Printf, Times) {
  const std::int64_t day = 86400ll * 1000000000;
  EXPECT_EQ(formatted("%Y", {{0, 8}}), "1970 Jan  1 00:00:00");
  EXPECT_EQ(formatted("%Y", {{20753 * day + 3723000000000, 8}}), "2026 Oct 27 01:02:03");
  // The ISO year: the last day of 1969 belongs to week 1 of 1970.
  EXPECT_EQ(formatted("%T", {{-day, 8}}), "Wed, 31 Dec 1970 00:00:00 UTC");
  EXPECT_EQ(formatted("%-22Y", {{0, 8}}), "1970 Jan  1 00:00:00  ");
}

TEST(Printf, LiteralsAndPercent) {
  Format format;
  Conversion first;
  first.literal = "a";
  first.conversion = '%';
  Conversion last;
  last.literal = "b\n";
  format.conversions = {first, last};
  std::string out;
  print_format(out, format, {}, {});
  EXPECT_EQ(out, "a%b\n");
}

// --- printa with a format

AggTable table_of(AggFunction function, std::vector<std::int64_t> data, std::uint64_t normal = 1) {
  AggTable table;
  table.desc.function = function;
  table.desc.id = 1;
  table.spec = AggSpec::of(table.desc);
  table.elements[""].data = std::move(data);
  table.normal = normal;
  return table;
}

std::string printed(const char* text, const AggTable& table) {
  Format format;
  format.conversions.push_back(conversion_of(text));
  format.conversions[0].aggregation = true;
  const std::vector<const AggTable*> tables = {&table};
  std::string out;
  for (const AggRow& row : sorted_rows(tables, Options(), 256)) {
    print_format_row(out, format, tables, row, {});
  }
  return out;
}

// REQ: DTRACE-18
TEST(PrintaFormat, ChoosesTheRenderingOfTheValue) {
  EXPECT_EQ(printed("%d", table_of(AggFunction::count, {7})), "7");
  EXPECT_EQ(printed("%8d", table_of(AggFunction::sum, {-3})), "      -3");
  EXPECT_EQ(printed("%u", table_of(AggFunction::sum, {-3})), "18446744073709551613");
  EXPECT_EQ(printed("%x", table_of(AggFunction::sum, {255})), "ff");
  EXPECT_EQ(printed("%d", table_of(AggFunction::avg, {2, 7})), "3");
  EXPECT_EQ(printed("%d", table_of(AggFunction::stddev, {2, 8, 40, 0})), "2");
}

// REQ: DTRACE-19
TEST(PrintaFormat, NormalisedSignedExceptAvg) {
  EXPECT_EQ(printed("%d", table_of(AggFunction::sum, {-1000}, 10)), "-100");
  EXPECT_EQ(printed("%d", table_of(AggFunction::avg, {2, -20})), "9223372036854775798");
  // The factor is signed too; the one quotient that does not fit wraps.
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(printed("%d", table_of(AggFunction::sum, {-1000}, ~std::uint64_t{0})), "1000");
  EXPECT_EQ(printed("%d", table_of(AggFunction::min, {lowest}, ~std::uint64_t{0})),
            "-9223372036854775808");
}

}  // namespace
}  // namespace dtmalloc::dtrace
