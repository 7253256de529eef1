// SPDX-License-Identifier: BSD-2-Clause
// Options: names, classes and value syntax of spec/dtrace.md 19.
#include "dtrace/consume/options.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::dtrace {
namespace {

constexpr const char* kName = "Invalid option name";
constexpr const char* kValue = "Invalid value for specified option";

std::string set(Options& options, std::string_view name, std::string_view value) {
  return options.set(name, value, false, false);
}

// REQ: DTRACE-50
TEST(Options, DefaultsOfTheCommand) {
  const Options options;
  EXPECT_EQ(options.get("bufsize"), 4u << 20);
  EXPECT_EQ(options.get("aggsize"), 4u << 20);
  EXPECT_TRUE(options.is_set("temporal"));
  EXPECT_FALSE(options.is_set("quiet"));
}

// REQ: DTRACE-51
TEST(Options, FlagsAndNumbers) {
  Options options;
  EXPECT_EQ(set(options, "quiet", {}), "");
  EXPECT_TRUE(options.is_set("quiet"));
  for (const char* off : {"no", "OFF", "false", "disabled", "Unset", ""}) {
    set(options, "quiet", "on");
    EXPECT_EQ(set(options, "quiet", off), "") << off;
    EXPECT_FALSE(options.is_set("quiet")) << off;
  }
  for (const char* on : {"yes", "enable", "ENABLED", "true", "set", "1", "0", "0x10"}) {
    EXPECT_EQ(set(options, "quiet", on), "") << on;
    EXPECT_TRUE(options.is_set("quiet")) << on;
    set(options, "quiet", "no");
  }
  EXPECT_EQ(set(options, "quiet", "maybe"), kValue);
  EXPECT_EQ(set(options, "aggsortpos", "-1"), kValue);
  EXPECT_EQ(set(options, "aggsortpos", "0"), "");
  EXPECT_TRUE(options.is_set("aggsortpos"));
}

// REQ: DTRACE-52
TEST(Options, Sizes) {
  Options options;
  struct Row {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Row& row : {Row{"4096", 4096}, Row{"4k", 4096}, Row{"2M", 2u << 20},
                         Row{"1g", 1u << 30}, Row{"0x10", 16}}) {
    EXPECT_EQ(set(options, "bufsize", row.text), "") << row.text;
    EXPECT_EQ(options.get("bufsize"), row.bytes) << row.text;
  }
  for (const char* bad :
       {"", "-4k", "1.5m", "4kb", "4q", "k", "99999999999999999999", "99999999t"}) {
    EXPECT_EQ(set(options, "bufsize", bad), kValue) << bad;
  }
  EXPECT_EQ(set(options, "bufsize", {}), kValue);
  EXPECT_EQ(set(options, "strsize", "8g"), kValue);
}

// REQ: DTRACE-53
TEST(Options, Rates) {
  struct Row {
    const char* text;
    std::uint64_t ns;
  };
  for (const Row& row :
       {Row{"100", 100}, Row{"7ns", 7}, Row{"7nsec", 7}, Row{"3us", 3000}, Row{"10ms", 10000000},
        Row{"1s", 1000000000}, Row{"2SEC", 2000000000}, Row{"1min", 60000000000},
        Row{"1h", 3600000000000}, Row{"1day", 86400000000000}, Row{"101hz", 9900990},
        Row{"10Hz", 100000000}}) {
    std::uint64_t ns = 0;
    EXPECT_TRUE(parse_rate(row.text, &ns)) << row.text;
    EXPECT_EQ(ns, row.ns) << row.text;
  }
  std::uint64_t ns = 0;
  for (const char* bad : {"", "0.5hz", "hz", "0hz", "5 ms", "-1s", "1fortnight"}) {
    EXPECT_FALSE(parse_rate(bad, &ns)) << bad;
  }
}

// REQ: DTRACE-53
TEST(Options, ARateIsNeverZero) {
  Options options;
  for (const char* name : {"switchrate", "aggrate", "statusrate"}) {
    EXPECT_EQ(set(options, name, "0"), kValue) << name;
    EXPECT_EQ(set(options, name, "0sec"), kValue) << name;
    EXPECT_EQ(set(options, name, "1"), "") << name;
  }
}

// REQ: DTRACE-54
TEST(Options, UnknownNotModelledAndMisplacedOnesAreRefused) {
  Options options;
  EXPECT_EQ(set(options, "nosuch", "1"), kName);
  EXPECT_EQ(set(options, "aggpercpu", "2"), "not modelled: option aggpercpu");
  EXPECT_EQ(set(options, "bufpolicy", "switch"), "");
  EXPECT_EQ(set(options, "bufpolicy", "ring"), "");
  EXPECT_EQ(set(options, "bufpolicy", "other"), kValue);
  EXPECT_EQ(options.set("define", "x", true, false),
            "Option cannot be used from within a D program");
  EXPECT_EQ(options.set("bufsize", "4k", false, true), "Operation illegal when tracing is active");
  EXPECT_EQ(options.set("quiet", {}, false, true), "");
}

}  // namespace
}  // namespace dtmalloc::dtrace
