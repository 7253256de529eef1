// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <dtmalloc/dtrace/probe.hpp>

namespace dtmalloc::dtrace {
namespace {

TEST(Globs, MatchAsTheFrameworkDoes) {
  // REQ: DLANG-32
  struct Row {
    const char* pattern;
    const char* text;
    bool matches;
  };
  constexpr Row kRows[] = {
      {"", "anything", true},
      {"temp", "temp", true},
      {"temp", "Temp", false},
      {"temp", "temps", false},
      {"*", "", true},
      {"t*", "temp", true},
      {"t*p", "temp", true},
      {"t*m", "temp", false},
      {"*e*", "temp", true},
      {"t**p", "temp", true},
      {"????", "temp", true},
      {"???", "temp", false},
      {"[a-t]emp", "temp", true},
      {"[!t]emp", "temp", false},
      {"[!a-s]emp", "temp", true},
      {"[xyz]*", "temp", false},
      {"te\\*p", "te*p", true},
      {"te\\*p", "temp", false},
      {"[a\\-c]", "-", true},
      {"[a\\-c]", "b", false},
      {"[", "[", false},
      {"[t", "t", false},
      {"*[0-9]*node", "80211node", true},
      {"[a-]", "-", true},
      {"\\", "\\", false},
      {"*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(glob_match(row.pattern, row.text), row.matches) << row.pattern << " " << row.text;
  }
  EXPECT_TRUE(is_glob("a?"));
  EXPECT_TRUE(is_glob("a\\b"));
  EXPECT_FALSE(is_glob("a]b-c"));
}

TEST(Descriptions, AlwaysPrintFourFields) {
  EXPECT_EQ(to_string(ProbeDescription{}), ":::");
  EXPECT_EQ(to_string(ProbeDescription{"dtmalloc", "", "temp", "malloc"}), "dtmalloc::temp:malloc");
  EXPECT_EQ(to_string(Stability::evolving), "Evolving");
  EXPECT_EQ(to_string(Stability::private_), "Private");
  EXPECT_EQ(to_string(DependencyClass::isa), "ISA");
}

}  // namespace
}  // namespace dtmalloc::dtrace
