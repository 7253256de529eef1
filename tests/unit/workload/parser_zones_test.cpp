// SPDX-License-Identifier: BSD-2-Clause
// Statements about zones: parse and print are inverses, and what is wrong has its tag and place.
#include <gtest/gtest.h>

#include <dtmalloc/workload/workload.hpp>

namespace dtmalloc::workload {
namespace {

// REQ: WL-40
TEST(ParserZones, PrintIsTheInverse) {
  const std::string text =
      "kernel cpus=2\n"
      "type M_A \"a\"\n"
      "zone Z \"my zone\" size=256 align=64 limit=100 flags=NOFREE|PCPU warning=\"full "
      "\\\"up\\\"\"\n"
      "zone Y \"y\" size=8\n"
      "repeat 3 as i {\n"
      "  x[i] = uma_zalloc Z M_NOWAIT|M_ZERO @foo;bar+0x1\n"
      "}\n"
      "uma_zfree Z x[0] @baz\n"
      "reclaim trim\n"
      "reclaim drain zone=\"malloc-64\"\n"
      "reclaim drain_cpu zone=\"y\" domain=1\n"
      "expect sleeps(\"my zone\") == 0\n"
      "zdestroy Z\n"
      "zone late \"late\" size=4096 flags=NOBUCKET\n";
  const Result<Workload> parsed = parse(text, "t.wl");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  EXPECT_EQ(print(*parsed), text);
  EXPECT_EQ(parsed->boot_statements(), 3u);  // zones are part of boot
  const Result<Workload> again = parse(print(*parsed), "t.wl");
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again == *parsed);
}

// REQ: WL-40. Workloads that differ in a zone alone are not equal.
TEST(ParserZones, ZonesCountInComparisons) {
  const char* const texts[] = {"zone Z \"z\" size=64\nzdestroy Z\n",
                               "zone Z \"z\" size=65\nzdestroy Z\n",
                               "zone Z \"y\" size=64\nzdestroy Z\n",
                               "zone Z \"z\" size=64 limit=1\nzdestroy Z\n",
                               "reclaim trim\n",
                               "reclaim drain\n",
                               "reclaim trim zone=\"a\"\n",
                               "reclaim trim domain=0\n"};
  for (const char* one : texts)
    for (const char* two : texts)
      EXPECT_EQ(*parse(one, "a") == *parse(two, "b"), one == two) << one << two;
}

// REQ: WL-41
TEST(ParserZones, WhatIsWrongHasATagAndAPlace) {
  const struct {
    const char* text;
    const char* tag;
    std::uint32_t line, column;
  } cases[] = {
      {"a = uma_zalloc Z M_WAITOK\n", "WL_UNKNOWN_ZONE", 1, 16},
      {"zone Z \"z\" size=64\numa_zfree Y a\n", "WL_UNKNOWN_ZONE", 2, 11},
      {"zone Z \"z\"\n", "WL_SYNTAX", 1, 6},
      {"zone Z \"z\" size=64 size=64\n", "WL_REDECLARED", 1, 20},
      {"zone Z \"z\" size=64\nzone Z \"z\" size=64\n", "WL_REDECLARED", 2, 6},
      {"zone Z \"z\" size=0\n", "WL_RANGE", 1, 17},
      {"zone Z \"z\" size=64 align=3\n", "WL_RANGE", 1, 26},
      {"zone Z \"z\" size=64 flags=NOFRE\n", "WL_UNKNOWN_FLAG", 1, 26},
      {"zone Z \"z\" size=64 flags=SMR\n", "WL_NOT_MODELLED", 1, 26},
      {"zone Z \"z\" size=64 limt=1\n", "WL_UNKNOWN_ATTRIBUTE", 1, 20},
      {"repeat 2 { zone Z \"z\" size=64\n }\n", "WL_CONTEXT", 1, 17},
      {"reclaim trimm\n", "WL_UNKNOWN_OPERATION", 1, 9},
      {"reclaim trim domain=0 domain=0\n", "WL_REDECLARED", 1, 23},
      {"reclaim trim zones=\"a\"\n", "WL_UNKNOWN_ATTRIBUTE", 1, 14},
  };
  for (const auto& wrong : cases) {
    const Result<Workload> parsed = parse(wrong.text, "t.wl");
    ASSERT_FALSE(parsed) << wrong.text;
    EXPECT_EQ(parsed.error().tag, wrong.tag) << wrong.text;
    EXPECT_EQ(parsed.error().where.line, wrong.line) << wrong.text;
    EXPECT_EQ(parsed.error().where.column, wrong.column) << wrong.text;
  }
}

}  // namespace
}  // namespace dtmalloc::workload
