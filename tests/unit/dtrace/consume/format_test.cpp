// SPDX-License-Identifier: BSD-2-Clause
// trace() of values by recorded size, dumps and keys: spec/dtrace.md 3.2 and 15.4.
#include "dtrace/consume/format.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace dtmalloc::dtrace {
namespace {

template <typename T>
std::string traced(T value, bool quiet = false) {
  std::string out;
  print_traced(out, std::as_bytes(std::span(&value, 1)), quiet, false);
  return out;
}

std::string traced_text(std::string text, std::size_t size, bool quiet = false,
                        bool rawbytes = false) {
  text.resize(size);
  std::string out;
  print_traced(out, std::as_bytes(std::span(text)), quiet, rawbytes);
  return out;
}

// REQ: DTRACE-10
TEST(TraceFormat, IntegersByRecordedSizeOnly) {
  EXPECT_EQ(traced<std::int64_t>(42), "               42");
  EXPECT_EQ(traced<std::uint64_t>(~0ull), "               -1");
  EXPECT_EQ(traced<std::int32_t>(-7), "       -7");
  EXPECT_EQ(traced<std::uint32_t>(0xffffffff), "       -1");
  EXPECT_EQ(traced<std::int16_t>(-1), " 65535");
  EXPECT_EQ(traced<std::int8_t>(-1), " 255");
  EXPECT_EQ(traced<std::int8_t>(5), "   5");
  EXPECT_EQ(traced<std::int64_t>(42, true), "42");
  EXPECT_EQ(traced<std::int32_t>(-7, true), "-7");
  EXPECT_EQ(traced<std::int16_t>(-1, true), "65535");
  EXPECT_EQ(traced<std::int8_t>(-1, true), "255");
}

// REQ: DTRACE-11
TEST(TraceFormat, TextOfPrintableBytesThenNuls) {
  EXPECT_EQ(traced_text("temp", 256), "  temp                             ");
  EXPECT_EQ(traced_text("temp", 256, true), "temp");
  // Longer than the column.
  EXPECT_EQ(traced_text(std::string(40, 'x'), 256), "  " + std::string(40, 'x'));
  // No NUL at all: padded even when quiet.
  EXPECT_EQ(traced_text("abc", 3, true), "  abc                              ");
}

// REQ: DTRACE-12
TEST(TraceFormat, DumpsWhatIsNoText) {
  const std::string heading =
      "\n           "
      "  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n";
  EXPECT_EQ(traced_text("", 20),
            heading +
                "         0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................\n"
                "        10: 00 00 00 00                                      ....\n");
  EXPECT_EQ(traced_text(std::string("ab\0c", 4), 5),
            heading + "         0: 61 62 00 63 00                                   ab.c.\n");
  EXPECT_EQ(traced_text("x\x01", 5), traced_text("x\x01", 5, true));
  EXPECT_EQ(traced_text("abc", 5, false, true),
            heading + "         0: 61 62 63 00 00                                   abc..\n");
}

TEST(TraceFormat, LongTextIsNotCut) {
  std::string out;
  append(out, "%s|", std::string(2000, 'y').c_str());
  EXPECT_EQ(out, std::string(2000, 'y') + "|");
}

// REQ: DTRACE-13
TEST(KeyFormat, StringsInFiftyColumnsIntegersBySize) {
  std::string out;
  print_key(out, {{.size = 256, .by_ref = true, .is_string = true}, "temp", 0});
  EXPECT_EQ(out, "  temp                                              ");
  const std::int32_t number = -1;
  out.clear();
  print_key(out, {{.size = 4}, std::string(reinterpret_cast<const char*>(&number), 4), 0});
  EXPECT_EQ(out, "       -1");
  // An empty string is text here.
  out.clear();
  print_key(out, {{.size = 256, .by_ref = true, .is_string = true}, "", 0});
  EXPECT_EQ(out, std::string(52, ' '));
}

}  // namespace
}  // namespace dtmalloc::dtrace
