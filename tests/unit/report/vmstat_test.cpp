// SPDX-License-Identifier: BSD-2-Clause
// The tables of vmstat -m, byte for byte.
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {
namespace {

// REQ: VMSTAT-01
TEST(Humanize, RoundsAsLibxo) {
  struct Case {
    std::uint64_t value;
    const char *thousand, *binary;
  };
  const Case cases[] = {
      {0, "0", "0"},          {999, "999", "999"},
      {1000, "1.0k", "1000"}, {1234, "1.2k", "1.2K"},
      {9949, "9.9k", "9.7K"}, {9950, "10k", "9.7K"},
      {9951, "10k", "9.7K"},  {10188, "10k", "9.9K"},  // 972 of 1024 is less than 95 %
      {10189, "10k", "10K"},  {999500, "1000k", "976K"},
      {69632, "70k", "68K"},  {1048575, "1.0M", "1024K"}};
  for (const Case& c : cases) {
    EXPECT_EQ(humanize(c.value, 1000, true), c.thousand) << c.value;
    EXPECT_EQ(humanize(c.value, 1024, true), c.binary) << c.value;
  }
  EXPECT_EQ(humanize(384, 1024, false), "384");
  EXPECT_EQ(humanize(1024, 1024, false), "1K");
  EXPECT_EQ(humanize(65536, 1024, false), "64K");
  EXPECT_EQ(humanize(static_cast<std::uint64_t>(-384), 1024, true), "0.0E");
}

Snapshot sample() {
  Snapshot s;
  s.classes = {16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  s.types.push_back({"temp", 5000, 3566, 36, 24, 0b111});
  s.types.push_back({"never", 0, 0, 0, 0, 0b1000});
  s.types.push_back({"devbuf", 1363149, 0, 4000000, 3988000, 0b10000010100001});
  return s;
}

// REQ: VMSTAT-02
TEST(Vmstat, PrintsTheNewestFormat) {
  EXPECT_EQ(print_vmstat_m(sample(), 2),
            "            Type  Use Memory Req Size(s)\n"
            "            temp   12  1.4K   36 16,32,64\n"
            "          devbuf  12k  1.3M 4.0M 16,384,1K,64K\n");
}

// REQ: VMSTAT-03
TEST(Vmstat, PrintsTheFormatsBefore) {
  EXPECT_EQ(print_vmstat_m(sample(), 1),
            "         Type InUse MemUse Requests  Size(s)\n"
            "         temp    12     2K       36  16,32,64\n"
            "       devbuf 12000  1332K  4000000  16,384,1024,65536\n");
  EXPECT_EQ(print_vmstat_m(sample(), 0),
            "         Type InUse MemUse HighUse Requests  Size(s)\n"
            "         temp    12     2K       -       36  16,32,64\n"
            "       devbuf 12000  1332K       -  4000000  16,384,1024,65536\n");
}

// REQ: VMSTAT-04
TEST(Vmstat, PrintsJsonAsLibxo) {
  EXPECT_EQ(print_vmstat_m_json(sample(), 2),
            R"({"__version":"2","vmstat":{"malloc-statistics":{"memory":[)"
            R"({"type":"temp","in-use":12,"memory-use":1434,"requests":36,"size":[16,32,64]},)"
            R"({"type":"devbuf","in-use":12000,"memory-use":1363149,"requests":4000000,)"
            R"("size":[16,384,1024,65536]}]}}})"
            "\n");
}

// REQ: VMSTAT-01, VMSTAT-04
TEST(Vmstat, NegativeTotalsPrintAsTheToolDoes) {
  Snapshot s = sample();
  s.types = {{"a", 0, 384, 1, 4, 1}};
  EXPECT_EQ(print_vmstat_m(s, 2),
            "            Type  Use Memory Req Size(s)\n"
            "               a 0.0E  0.0E    1 16\n");
  EXPECT_NE(print_vmstat_m_json(s, 2).find("\"in-use\":18446744073709551613"), std::string::npos);
}

// REQ: VMSTAT-07
TEST(Vmstat, NothingIsCut) {
  Snapshot s = sample();
  s.types = {{"a name of thirty-one characters", 123456789012, 0, 12345678, 0, 1}};
  EXPECT_EQ(print_vmstat_m(s, 2),
            "            Type  Use Memory Req Size(s)\n"
            "a name of thirty-one characters  12M  115G  12M 16\n");
  EXPECT_EQ(print_vmstat_m(s, 1),
            "         Type InUse MemUse Requests  Size(s)\n"
            "a name of thirty-one characters 12345678 120563271K 12345678  16\n");
}

// REQ: VMSTAT-09
TEST(Vmstat, PrintsXmlAsLibxo) {
  Snapshot s = sample();
  s.types[0].name = "a<b> & \"c\"";
  s.types.resize(1);
  EXPECT_EQ(
      xml_of_json(print_vmstat_m_json(s, 2)),
      "<vmstat version=\"2\"><malloc-statistics><memory><type>a&lt;b&gt; &amp; \"c\"</type>"
      "<in-use>12</in-use><memory-use>1434</memory-use><requests>36</requests>"
      "<size>16</size><size>32</size><size>64</size></memory></malloc-statistics></vmstat>\n");
  s.types.clear();
  EXPECT_EQ(xml_of_json(print_vmstat_m_json(s, 1)),
            "<vmstat version=\"1\"><malloc-statistics></malloc-statistics></vmstat>\n");
  EXPECT_EQ(xml_of_json(print_vmstat_z_json(s, 2)),
            "<vmstat version=\"2\"><memory-zone-statistics></memory-zone-statistics></vmstat>\n");
  EXPECT_EQ(xml_of_json("{\"types\":[\"a\",\"b\"]}\n"),
            "<types><types>a</types><types>b</types></types>\n");
}

TEST(Json, EscapesNames) {
  EXPECT_EQ(json_string("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\"");
  EXPECT_EQ(json_string("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(json_string("\xff\xc3"), "\"\\u00ff\\u00c3\"");
}

}  // namespace
}  // namespace dtmalloc::report
