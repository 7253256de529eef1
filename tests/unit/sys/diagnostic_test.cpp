// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <dtmalloc/sys/diagnostic.hpp>

namespace dtmalloc {
namespace {

TEST(Diagnostic, PrintsPlaceLineCaretAndHints) {
  Diagnostic d;
  d.tag = "WL_UNKNOWN_TYPE";
  d.where = {"load.wl", 3, 15, 4};
  d.message = "unknown type M_TT";
  d.source_line = "a = malloc 10 M_TT M_WAITOK";
  d.expected = "a type";
  d.near_names = {"M_T", "M_TTY"};
  EXPECT_EQ(to_string(d),
            "load.wl:3:15: error: unknown type M_TT\n"
            "  a = malloc 10 M_TT M_WAITOK\n"
            "                ^~~~\n"
            "  expected a type\n"
            "  did you mean 'M_T' or 'M_TTY'?\n");
}

TEST(Diagnostic, PrintsWithoutAPlace) {
  Diagnostic d;
  d.message = "no input";
  EXPECT_EQ(to_string(d), "error: no input\n");
  d.where.file = "x.wl";
  EXPECT_EQ(to_string(d), "x.wl: error: no input\n");
}

TEST(Diagnostic, CutsLongLinesAroundThePlace) {
  Diagnostic d;
  d.where = {"f", 1, 5001, 2};
  d.message = "m";
  d.source_line = std::string(5000, 'a') + "!!" + std::string(5000, 'b');
  const std::string text = to_string(d);
  EXPECT_LT(text.size(), 300u);
  EXPECT_NE(text.find("..."), std::string::npos);
  const std::size_t line = text.find('\n') + 1;
  const std::size_t caret = text.find('\n', line) + 1;
  EXPECT_EQ(text.find('!') - line, text.find('^') - caret);
}

TEST(Diagnostic, ControlBytesPrintAsQuestionMarks) {
  Diagnostic d;
  d.where = {"f", 1, 2, 1};
  d.message = std::string("bad \0 byte", 10);
  d.source_line = std::string("a\0\tb\x1b", 5);
  EXPECT_EQ(to_string(d), "f:1:2: error: bad ? byte\n  a? b?\n   ^\n");
}

TEST(Diagnostic, PlaceBeyondTheLinePointsAtItsEnd) {
  Diagnostic d;
  d.where = {"f", 1, 99, 5};
  d.message = "m";
  d.source_line = "abc";
  EXPECT_EQ(to_string(d), "f:1:99: error: m\n  abc\n     ^\n");
}

TEST(NearestNames, FindsTypingErrors) {
  const std::vector<std::string> names = {"M_TEMP", "M_DEVBUF", "M_CACHE", "M_TAMP"};
  EXPECT_EQ(nearest_names("M_TMEP", names), (std::vector<std::string>{"M_TEMP", "M_TAMP"}));
  EXPECT_EQ(nearest_names("m_devbuf", names), (std::vector<std::string>{"M_DEVBUF"}));
  EXPECT_EQ(nearest_names("M_XYZZY_PLUGH", names), std::vector<std::string>{});
  EXPECT_EQ(nearest_names("M_TEMP", names, 1), (std::vector<std::string>{"M_TEMP"}));
  EXPECT_EQ(nearest_names("", names), std::vector<std::string>{});
}

TEST(NearestNames, TiesStayInOrder) {
  const std::vector<std::string> names = {"abcx", "abcy", "abcz"};
  EXPECT_EQ(nearest_names("abcd", names), names);
}

}  // namespace
}  // namespace dtmalloc
