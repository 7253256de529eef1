// SPDX-License-Identifier: BSD-2-Clause
// The tables of vmstat -z, byte for byte.
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {
namespace {

ZoneStats zone(const char* name, std::uint64_t size, std::uint64_t limit, std::uint64_t used,
               std::uint64_t free, std::uint64_t requests, std::uint64_t fail = 0,
               std::uint64_t sleep = 0, std::uint64_t xdomain = 0) {
  ZoneStats out;
  out.name = name;
  out.size = size;
  out.limit = limit;
  out.used = used;
  out.free = free;
  out.requests = requests;
  out.fail = fail;
  out.sleep = sleep;
  out.xdomain = xdomain;
  return out;
}

Snapshot sample() {
  Snapshot s;
  s.zones = {zone("malloc-16", 16, 0, 1, 503, 1),
             zone("mbuf", 256, 26137965, 3657, 4699, 4372990387, 2105, 10295, 7),
             zone("zio_data_buf_10485760_and_on", 10485760, 0, 0, 0, 0),
             zone("mbuf", 256, 0, 0, 0, 0)};
  return s;
}

// REQ: VMSTATZ-01, VMSTATZ-05, VMSTATZ-07
TEST(VmstatZ, PrintsTheNewestFormat) {
  EXPECT_EQ(print_vmstat_z(sample(), 2),
            "ITEM                   SIZE   LIMIT     USED     FREE      REQ FAIL SLEEP XDOM\n"
            "malloc-16:               16,      0,       1,     503,       1,   0,   0,   0\n"
            "mbuf:                   256,26137965,    3657,    4699,4372990387,2105,10295,   7\n"
            "zio_data_buf_10485760_and_on:10485760,      0,       0,       0,       0,   0,   0,"
            "   0\n"
            "mbuf:                   256,      0,       0,       0,       0,   0,   0,   0\n");
}

// REQ: VMSTATZ-01
TEST(VmstatZ, NameAndSizeShareTheirColumns) {
  Snapshot s;
  for (const char* name :
       {"a", "abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwxy", "abcdefghijklmnopqrstuvwxyz"})
    s.zones.push_back(zone(name, 7, 0, 0, 0, 0));
  const std::string rest = ",      0,       0,       0,       0,   0,   0,   0\n";
  const std::string table = print_vmstat_z(s, 2);
  EXPECT_EQ(table.substr(table.find('\n') + 1),
            "a:                        7" + rest + "abcdefghijklmnopqrstuvwx: 7" + rest +
                "abcdefghijklmnopqrstuvwxy:7" + rest + "abcdefghijklmnopqrstuvwxyz:7" + rest);
}

// REQ: VMSTATZ-02, VMSTATZ-07
TEST(VmstatZ, PrintsTheFormatOf13To15) {
  EXPECT_EQ(print_vmstat_z(sample(), 1),
            "ITEM                   SIZE  LIMIT     USED     FREE      REQ     FAILSLEEP XDOMAIN\n"
            "\n"
            "malloc-16:               16,      0,       1,     503,       1,   0,   0,   0\n"
            "mbuf:                   256, 26137965,    3657,    4699,4372990387,2105,10295,   7\n"
            "zio_data_buf_10485760_and_on: 10485760,      0,       0,       0,       0,   0,   0,"
            "   0\n"
            "mbuf:                   256,      0,       0,       0,       0,   0,   0,   0\n");
}

// REQ: VMSTATZ-03
TEST(VmstatZ, PrintsTheFormatsBefore) {
  Snapshot s = sample();
  s.zones.resize(2);
  EXPECT_EQ(print_vmstat_z(s, 0),
            "ITEM                   SIZE  LIMIT     USED     FREE      REQ FAIL SLEEP\n"
            "\n"
            "malloc-16:               16,      0,       1,     503,       1,   0,   0\n"
            "mbuf:                   256, 26137965,    3657,    4699,4372990387,2105,10295\n");
  EXPECT_EQ(print_vmstat_z(s, -1),
            "ITEM                     SIZE     LIMIT      USED      FREE  REQUESTS\n"
            "\n"
            "malloc-16:                 16,        0,        1,      503,        1\n"
            "mbuf:                     256, 26137965,     3657,     4699, 4372990387\n");
}

// REQ: VMSTATZ-04
TEST(VmstatZ, PrintsJsonAsLibxo) {
  Snapshot s = sample();
  s.zones.resize(2);
  const std::string all =
      R"("vmstat":{"memory-zone-statistics":{"zone":[)"
      R"({"name":"malloc-16","size":16,"limit":0,"used":1,"free":503,"requests":1,"fail":0,)"
      R"("sleep":0,"xdomain":0},)"
      R"({"name":"mbuf","size":256,"limit":26137965,"used":3657,"free":4699,)"
      R"("requests":4372990387,"fail":2105,"sleep":10295,"xdomain":7}]}}})"
      "\n";
  EXPECT_EQ(print_vmstat_z_json(s, 2), R"({"__version":"2",)" + all);
  EXPECT_EQ(print_vmstat_z_json(s, 1), R"({"__version":"1",)" + all);
  const std::string older = print_vmstat_z_json(s, 0);
  EXPECT_NE(older.find("\"sleep\":10295}"), std::string::npos);
  EXPECT_EQ(older.find("xdomain"), std::string::npos);
}

}  // namespace
}  // namespace dtmalloc::report
