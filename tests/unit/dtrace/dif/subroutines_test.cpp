// SPDX-License-Identifier: BSD-2-Clause
// The subroutines, through D: results and edges of spec/dtrace.md 16.
#include <gtest/gtest.h>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::trace;
using testing::Traced;

TEST(Subroutines, ComputeTexts) {
  // REQ: DLANG-26
  struct Row {
    const char* expression;
    const char* text;
  };
  constexpr Row kRows[] = {
      {"strjoin(\"abc\", \"def\")", "abcdef"},
      {"strjoin(strjoin(\"a\", \"b\"), strjoin(\"c\", \"d\"))", "abcd"},
      {"substr(\"abcdef\", 2)", "cdef"},
      {"substr(\"abcdef\", 2, 2)", "cd"},
      {"substr(\"abcdef\", -2)", "ef"},
      {"substr(\"abcdef\", -8, 3)", "a"},
      {"substr(\"abcdef\", -8, 2)", ""},
      {"substr(\"abcdef\", 6)", ""},
      {"substr(\"abcdef\", 1, -2)", "bcd"},
      {"substr(\"abcdef\", 1, -9)", ""},
      {"substr(\"abcdef\", 0, 100)", "abcdef"},
      {"lltostr(0)", "0"},
      {"lltostr(-17)", "-17"},
      {"lltostr(255, 16)", "0xff"},
      {"lltostr(0, 16)", "0x0"},
      {"lltostr(8, 8)", "010"},
      {"lltostr(0, 8)", "0"},
      {"lltostr(-1, 16)", "0xffffffffffffffff"},
      {"lltostr(5, 2)", "101"},
      {"lltostr(35, 36)", "z"},
      {"toupper(\"aBc1\")", "ABC1"},
      {"tolower(\"aBc1\")", "abc1"},
      {"basename(\"/usr/lib\")", "lib"},
      {"basename(\"/usr/\")", "usr"},
      {"basename(\"/\")", "/"},
      {"basename(\"\")", "."},
      {"basename(\"a\")", "a"},
      {"dirname(\"/usr/lib\")", "/usr"},
      {"dirname(\"/usr/\")", "/"},
      {"dirname(\"a\")", "."},
      {"dirname(\"/\")", "/"},
      {"dirname(\"\")", "."},
      {"dirname(\"a//b//\")", "a"},
      {"strstr(\"abcabc\", \"ca\")", "cabc"},
      {"strstr(\"abc\", \"\")", "abc"},
      {"strchr(\"abcb\", 'b')", "bcb"},
      {"strrchr(\"abcb\", 'b')", "b"},
  };
  for (const Row& row : kRows) {
    const Traced got = trace(row.expression);
    EXPECT_TRUE(got.compiled) << row.expression << got.error;
    EXPECT_EQ(got.fault, Fault::none) << row.expression;
    EXPECT_EQ(got.text, row.text) << row.expression;
  }
}

TEST(Subroutines, ComputeNumbers) {
  // REQ: DLANG-26
  struct Row {
    const char* expression;
    std::int64_t value;
  };
  constexpr Row kRows[] = {
      {"strlen(\"\")", 0},
      {"strlen(\"abc\")", 3},
      {"index(\"abcabc\", \"bc\")", 1},
      {"index(\"abcabc\", \"bc\", 2)", 4},
      {"index(\"abcabc\", \"bc\", -5)", 1},
      {"index(\"abc\", \"x\")", -1},
      {"index(\"abc\", \"\", 3)", 3},
      {"index(\"abc\", \"\", 9)", 3},
      {"index(\"abc\", \"c\", 3)", -1},
      {"index(\"\", \"\")", 0},
      {"rindex(\"abcabc\", \"bc\")", 4},
      {"rindex(\"abcabc\", \"bc\", 3)", 1},
      {"rindex(\"abcabc\", \"bc\", -1)", -1},
      {"rindex(\"abc\", \"\", -1)", 0},
      {"rindex(\"abc\", \"\", 9)", 3},
      {"rindex(\"\", \"\")", 0},
      {"strtoll(\"  -12x\")", -12},
      {"strtoll(\"+7\")", 7},
      {"strtoll(\"ff\", 16)", 255},
      {"strtoll(\"x\")", 0},
      {"htons(0x1234)", 0x3412},
      {"ntohl(0x12345678)", 0x78563412},
      {"htonll(1)", std::int64_t{1} << 56},
      {"strstr(\"abc\", \"x\") == NULL", 1},
      {"rand() != rand()", 1},
  };
  for (const Row& row : kRows) {
    const Traced got = trace(row.expression);
    EXPECT_TRUE(got.compiled) << row.expression << got.error;
    EXPECT_EQ(got.fault, Fault::none) << row.expression;
    EXPECT_EQ(static_cast<std::int64_t>(got.bits), row.value) << row.expression;
  }
}

TEST(Subroutines, Fault) {
  // REQ: DLANG-26 DLANG-27
  EXPECT_EQ(trace("strlen((char *)0)").fault, Fault::badaddr);
  EXPECT_EQ(trace("strlen(stringof arg1)").fault, Fault::badaddr);
  EXPECT_EQ(trace("lltostr(1, 37)").fault, Fault::illop);
  EXPECT_EQ(trace("lltostr(1, 1)").fault, Fault::illop);
  EXPECT_EQ(trace("strtoll(\"1\", 0)").fault, Fault::illop);
  // Just inside and just outside strsize, the NUL included.
  EXPECT_EQ(trace("strjoin(\"abc\", \"defg\")", "", 8).text, "abcdefg");
  EXPECT_EQ(trace("strjoin(\"abcd\", \"efgh\")", "", 8).fault, Fault::noscratch);
  EXPECT_EQ(trace("substr(\"abcdefghij\", 0, 9)", "", 8).text, "abcdefg");
}

}  // namespace
}  // namespace dtmalloc::dtrace
