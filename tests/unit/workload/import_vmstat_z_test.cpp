// SPDX-License-Identifier: BSD-2-Clause
// Tables of vmstat -z, netstat -m and sysctl vm.uma: what is read, what is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/report/report.hpp>
#include <dtmalloc/workload/import.hpp>
#include <fstream>
#include <random>
#include <sstream>

#include "support/paths.hpp"

namespace dtmalloc::workload {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string capture(const std::string& name) {
  std::ifstream in(support::source_dir() + "/tests/golden/cases/vmstat-z/" + name + ".txt");
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

ImportResult import(const std::string& text, const ImportOptions& options = {}) {
  auto result = import_vmstat_z(text, "t", options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : ImportResult{};
}

bool told(const ImportResult& result, const std::string& note) {
  const bool found =
      std::find(result.notes.begin(), result.notes.end(), note) != result.notes.end();
  if (!found) {
    for (const std::string& each : result.notes) ADD_FAILURE() << each << "\nwanted: " << note;
  }
  return found;
}

std::vector<std::uint64_t> numbers(const ZoneRow& r) {
  return {r.size, r.limit, r.used, r.free, r.requests, r.fail, r.sleep, r.xdomain};
}

// REQ: ZIMPORT-01, ZIMPORT-02
TEST(ImportVmstatZ, RowsTellTheirFormat) {
  const ZoneTable table = read_vmstat_z(
      "ITEM            SIZE     LIMIT    USED    FREE  REQUESTS\n\n"
      "PIPE:            408,        0,     10,     20,     300\n"
      "malloc-16:        16,        0,      1,      2,       3,   4\n"
      "mbuf:            256, 26137965,    3657,    4699,4372990387,   5,   6\n"
      "a:b c:          1024,      0,     138,      89,    2105,10295,   7,   8\n"
      "UMA Hash: 256, 0, 3, 12, 10, 0, 0, 768b, 3KB, 4KB, 80%**\n"
      "blanks:   256  0  3  12  10  1  2\n",
      "t");
  EXPECT_TRUE(table.notes.empty());
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_THAT(numbers(table.rows[0]), ElementsAre(408, 0, 10, 20, 300, 0, 0, 0));
  EXPECT_THAT(numbers(table.rows[1]), ElementsAre(16, 0, 1, 2, 3, 4, 0, 0));
  EXPECT_THAT(numbers(table.rows[2]), ElementsAre(256, 26137965, 3657, 4699, 4372990387, 5, 6, 0));
  EXPECT_THAT(numbers(table.rows[3]), ElementsAre(1024, 0, 138, 89, 2105, 10295, 7, 8));
  EXPECT_THAT(numbers(table.rows[4]), ElementsAre(256, 0, 3, 12, 10, 0, 0, 0));
  EXPECT_THAT(numbers(table.rows[5]), ElementsAre(256, 0, 3, 12, 10, 1, 2, 0));
  EXPECT_EQ(table.rows[3].name, "a:b c");
  std::vector<ZoneFormat> formats;
  for (const ZoneRow& row : table.rows) formats.push_back(row.format);
  EXPECT_THAT(formats, ElementsAre(ZoneFormat::z1, ZoneFormat::z1, ZoneFormat::z2, ZoneFormat::z3,
                                   ZoneFormat::z2, ZoneFormat::z2));
}

// REQ: ZIMPORT-03
TEST(ImportVmstatZ, Release16AndJson) {
  const ZoneTable table = read_vmstat_z(
      "ITEM                   SIZE   LIMIT     USED     FREE      REQ FAIL SLEEP XDOM\n"
      "malloc-65536:         65536,      0,       1,       0,       1,   0,   0,   0\n",
      "t");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].format, ZoneFormat::z16);
  EXPECT_THAT(
      import("ITEM SIZE LIMIT USED FREE REQ FAIL SLEEP XDOM\nz: 8, 0, 0, 0, 0, 0, 0, 0\n").text,
      HasSubstr("release=16"));
  for (const bool two : {true, false}) {
    const std::string json = std::string(R"({"__version": ")") + (two ? "2" : "1") +
                             R"(", "memory-zone-statistics": {"zone": [
 {"name":"malloc-16)" + (two ? "" : ":") +
                             R"(","size":16,"limit":0,"used":1,"free":503,
  "requests":4372990387,"fail":2,"sleep":3,"xdomain":4,"new":[1,{"a":2}]},
 {"name":"bad","size":"x"},
 {"name":"\u0001","size":1,"limit":0,"used":0,"free":0,"requests":0}]}})";
    const ZoneTable rows = read_vmstat_z_json(json, "t");
    ASSERT_EQ(rows.rows.size(), 1u);
    EXPECT_EQ(rows.rows[0].name, "malloc-16");
    EXPECT_THAT(numbers(rows.rows[0]), ElementsAre(16, 0, 1, 503, 4372990387, 2, 3, 4));
    EXPECT_EQ(rows.rows[0].format, two ? ZoneFormat::z16 : ZoneFormat::z3);
    EXPECT_EQ(rows.notes.size(), 2u);
    EXPECT_THAT(import(json).text, HasSubstr(two ? "release=16" : "release=14"));
  }
  EXPECT_THAT(read_vmstat_z_json("{\"zone\":[", "t").notes,
              ElementsAre("t:1: skipped from here: no JSON"));
}

// REQ: ZIMPORT-08
TEST(ImportVmstatZ, Totals) {
  EXPECT_TRUE(told(import(capture("01")),
                   "t: 16 zones: 2536608 bytes used, 268392 free, 2805000 "
                   "in all; most in UMA Slabs 0: 17616 x 80 = 1409280"));
  EXPECT_TRUE(told(import(capture("05")),
                   "t: 6 zones: 91141888 bytes used, 2128640 free, 93270528 in all; most in "
                   "mbuf_jumbo_page: 16192 x 4096 = 66322432"));
  EXPECT_TRUE(told(import(capture("06")),
                   "t: 17 zones: 2399363072 bytes used, 659456 free, 2400022528 in all; most in "
                   "abd_chunk: 585782 x 4096 = 2399363072"));
  EXPECT_TRUE(told(import(capture("08")),
                   "t: 18 zones: 14098200 bytes used, 1293416 free, 15391616 in all; most in "
                   "RADIX NODE: 16495 x 144 = 2375280"));
}

// REQ: ZIMPORT-17
TEST(ImportVmstatZ, WiredMemoryThatIsInNoZone) {
  const std::string table =
      "ITEM SIZE LIMIT USED FREE REQ FAIL SLEEP\n"
      "big: 1048576, 0, 1271, 56, 1500, 0, 0\n"
      "page: 4096, 0, 136, 23, 9000, 0, 0\n"
      "small: 4, 0, 173, 499, 20000, 0, 0\n";
  // 16 GB against the zones' 1392114304 bytes.
  const std::string most =
      "t: 15787754880 of 17179869184 wired bytes, 91%, are in no zone: not in malloc or UMA, but "
      "for "
      "malloc's blocks above 65536 bytes, which vmstat -m counts";
  EXPECT_TRUE(told(import(table + "vm.stats.vm.v_wire_count: 4194304\n"), most));
  EXPECT_TRUE(told(import("  vm.stats.vm.v_wire_count = 4194304\n" + table), most));
  EXPECT_TRUE(
      told(import("vm.stats.vm.v_page_size: 16384\n" + table + "vm.stats.vm.v_wire_count: 1048576"),
           most));
  EXPECT_TRUE(told(import(table + "vm.stats.vm.v_wire_count: 100\n"),
                   "t: 409600 bytes are wired, fewer than the zones have: of another moment"));
  // Nothing else is said of these lines.
  EXPECT_EQ(import(table + "vm.stats.vm.v_wire_count: 4194304\n").notes.size(),
            import(table).notes.size());
  const std::string unknown =
      "t: whether memory is wired that is in no zone is not in the capture: put the line of "
      "`sysctl "
      "vm.stats.vm.v_wire_count` into it";
  EXPECT_TRUE(told(import(table), unknown));
  EXPECT_TRUE(told(import(table + "vm.stats.vm.v_wire_count: many\n"), unknown));
  // netstat -m counts some of the zones.
  EXPECT_THAT(import(capture("16")).notes, Not(Contains(unknown)));
}

// REQ: ZIMPORT-07
TEST(ImportVmstatZ, GroupsOfOneName) {
  const ImportResult result = import(capture("02"));
  EXPECT_EQ(result.rows, 17u);
  EXPECT_TRUE(
      told(result, "t:4: malloc-8192: 4 zones of this name: used 20, free 4, requests 187"));
  EXPECT_TRUE(
      told(result, "t:12: malloc-16384: 8 zones of this name: used 26, free 16, requests 381"));
  EXPECT_TRUE(told(result, "t:17: malloc-32768: 5 zones of this name: used 8, free 0, requests 8"));
  EXPECT_THAT(result.text, HasSubstr("malloc 8192 M_CAPTURED"));
}

// REQ: ZIMPORT-09
TEST(ImportVmstatZ, LimitsAndRefusals) {
  const ImportResult lab = import(capture("03"));
  EXPECT_TRUE(told(lab, "t:4: mbuf_cluster: 1152 of 262144 items, 0.44 % of the limit"));
  EXPECT_THAT(lab.text, HasSubstr("zone Z_MBUF_CLUSTER \"mbuf_cluster\" size=2048 limit=262144\n"));
  for (const std::string& note : lab.notes) EXPECT_THAT(note, Not(HasSubstr("refusals")));
  const ImportResult crash = import(capture("01"));
  EXPECT_TRUE(told(crash, "t:13: 128 Bucket: 10295 refusals; the zone has no limit"));
  const ImportResult full = import("full: 16, 100, 100, 0, 5000, 7, 9\n");
  EXPECT_TRUE(told(full, "t:1: full: 7 refusals; the zone is at its limit"));
  EXPECT_TRUE(told(full, "t:1: full: 9 sleeps at the limit"));
}

// REQ: ZIMPORT-04, ZIMPORT-09
TEST(ImportVmstatZ, Netstat) {
  const ImportResult result = import(capture("16"));
  EXPECT_TRUE(told(result,
                   "t:2: mbuf_cluster: 3091007 refusals not explained by the zone limit (18 "
                   "% full): memory was short"));
  EXPECT_TRUE(told(result,
                   "t:4: mbuf_jumbo_page: 12800 of 12800 items, 100.00 % of the limit: the "
                   "next request that does not wait fails"));
  EXPECT_THAT(result.text,
              HasSubstr("zone Z_MBUF_JUMBO_PAGE \"mbuf_jumbo_page\" size=4096 limit=12800\n"));
  EXPECT_THAT(result.text, HasSubstr("repeat 12800 as i { mbuf_jumbo_page[i]"));
  EXPECT_THAT(result.text, Not(HasSubstr("Z_MBUF_PACKET")));
  const ZoneTable table = read_netstat_m(
      "1/2/3 mbufs in use (current/cache/total)\n5/6/11/20 4k jumbo clusters in use\n"
      "7/8/9 requests for mbufs denied (mbufs/clusters/mbuf+clusters)\n"
      "4372990387/8/9 requests for jumbo clusters denied (4k/9k/16k)\n"
      "3/0/0 requests for jumbo clusters delayed (4k/9k/16k)\n0 requests for sfbufs denied\n",
      "t");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(numbers(table.rows[0]), ElementsAre(256, 0, 1, 2, 1, 7, 0, 0));
  EXPECT_THAT(numbers(table.rows[1]), ElementsAre(4096, 20, 5, 6, 5, 4372990387, 3, 0));
}

// REQ: ZIMPORT-05
TEST(ImportVmstatZ, SysctlOfAKeg) {
  const ImportResult result = import(capture("09"));
  EXPECT_TRUE(told(result, "t:26: skipped: i915_dependency: the dump is cut, its size is missing"));
  EXPECT_TRUE(told(result,
                   "t:1: i915_priolist: size 48, align 63: rsize 64, 1 page, 63 items a slab, "
                   "efficiency 98 %; in the model bucket_size_max 254"));
  EXPECT_THAT(result.text, HasSubstr("zone Z_I915_PRIOLIST \"i915_priolist\" size=48 align=64\n"));
  const ZoneTable table = read_sysctl_uma(
      "vm.uma.a_b.size=64\nvm.uma.a_b.keg.name=a b\nvm.uma.a_b.stats.current: 3\n"
      "vm.uma.a_b.domain.0.nitems: 5\nvm.uma.a_b.domain.1.nitems: 6\n"
      "vm.uma.a_b.keg.domain.0.free_items: 7\nkern.ostype: FreeBSD\n",
      "t");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].name, "a b");
  EXPECT_EQ(table.rows[0].free, 18u);
  EXPECT_EQ(table.rows[0].used, 3u);
  EXPECT_EQ(table.notes.size(), 1u);
}

// REQ: ZIMPORT-06
TEST(ImportVmstatZ, TwoStates) {
  const ImportResult result = import(capture("10"));
  EXPECT_EQ(result.rows, 1u);
  EXPECT_TRUE(told(result,
                   "t:4: socket: since line 2: requests +61, used unchanged (30), free "
                   "unchanged (65), fail unchanged (0); the earlier state is imported"));
  EXPECT_THAT(result.text, HasSubstr("requests 43764"));
  const ImportResult diff =
      import("-a: 8, 0, 5, 3, 10, 0\n+a: 8, 0, 2, 6, 12, 1\n+b: 8, 0, 0, 0, 0\n");
  EXPECT_EQ(diff.rows, 1u);
  EXPECT_TRUE(told(diff,
                   "t:2: a: since line 1: requests +2, used -3, free +3, fail +1; the earlier "
                   "state is imported"));
  EXPECT_TRUE(told(diff, "t:3: b: new in the later state, left out"));
}

// REQ: ZIMPORT-10, ZIMPORT-13
TEST(ImportVmstatZ, ZonesOfMalloc) {
  const ImportResult result = import(capture("08"));
  EXPECT_TRUE(told(result, "t:11: mt_zone: 471 malloc types registered"));
  EXPECT_THAT(result.text, HasSubstr("release=12"));
  EXPECT_THAT(result.text,
              HasSubstr("repeat 27960 as i { m64[i] = malloc 64 M_CAPTURED M_WAITOK }"));
  EXPECT_THAT(result.text, HasSubstr("zone Z_64_PCPU \"64 pcpu\" size=8 flags=PCPU\n"));
  EXPECT_THAT(import(capture("02")).text, HasSubstr("release=14"));
  EXPECT_THAT(import("16: 16, 0, 0, 0, 0\n4096: 4096, 0, 0, 0, 0\n").text, HasSubstr("release=8"));
}

// REQ: ZIMPORT-13
TEST(ImportVmstatZ, ReleaseThatLacksAClass) {
  const std::string text = "malloc-16: 16, 0, 0, 0, 0, 0, 0\nmalloc-384: 384, 0, 1, 0, 1, 0, 0\n";
  EXPECT_THAT(import(text, {.release = 16}).text, HasSubstr("release=16"));
  const auto refused = import_vmstat_z(text, "t", {.release = 12});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "t: line 2: release 12 has no size class 384");
  EXPECT_EQ(refused.error().expected, "a release with class 384: 14 or 16");
  EXPECT_FALSE(import_vmstat_z(text, "t", {.release = 13}));
}

// REQ: ZIMPORT-11
TEST(ImportVmstatZ, LargeItems) {
  const ImportResult result = import(capture("06"));
  EXPECT_TRUE(told(result, "t:14: zio_buf_16777216: 1 item a slab, 4096 pages an item"));
  EXPECT_TRUE(told(result, "t:16: lz4_cache: 1 item a slab, 4 pages an item"));
}

// REQ: ZIMPORT-12
TEST(ImportVmstatZ, BytesAndShares) {
  const std::string text = import(capture("14")).text;
  std::stringstream rows(capture("14"));
  std::string line;
  std::getline(rows, line);
  // Each line of the capture ends with its owner's own figures: USED, FREE, TOTAL, FREE%.
  int checked = 0;
  while (std::getline(rows, line)) {
    std::vector<std::string> cell;
    std::stringstream cells(line);
    for (std::string each; std::getline(cells, each, ',');)
      cell.push_back(each.substr(each.find_first_not_of(' ')));
    ASSERT_EQ(cell.size(), 11u) << line;
    const std::string name = cell[0].substr(0, cell[0].find(':'));
    const std::string share = cell[10].substr(0, cell[10].find('%'));
    EXPECT_THAT(text, HasSubstr("# " + name + ": used " + cell[7] + ", free " + cell[8] +
                                ", total " + cell[9] + ", " + share + " % free"));
    ++checked;
  }
  EXPECT_EQ(checked, 19);
}

// REQ: ZIMPORT-14
TEST(ImportVmstatZ, BadRowsAreNamed) {
  const ZoneTable table = read_vmstat_z(
      "a: 8, 0, 1, 2\n: 8, 0, 1, 2, 3\nno colon\nb: 8, 0, 1, 2, 3, 4, 5, 6, 7\n...\n"
      "c: 99999999999999999999, 0, 1, 2, 3\nd\x01: 1, 2, 3, 4, 5\n----\n| e: 8, 0, 1, 2, 3 |\n",
      "t");
  EXPECT_THAT(table.notes, ElementsAre("t:1: skipped: 4 numbers behind the zone, expected 5 to 8",
                                       "t:2: skipped: the name of the zone is missing",
                                       "t:3: skipped: no zone and colon",
                                       "t:4: skipped: 9 numbers behind the zone, expected 5 to 8",
                                       "t:5: the table is cut here",
                                       "t:6: skipped: 0 numbers behind the zone, expected 5 to 8",
                                       "t:7: skipped: the name of the zone holds control bytes"));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].name, "e");
  std::vector<std::string> notes;
  const auto none =
      import_vmstat_z("x\nz: 0, 0, 0, 0, 0\n", "t",
                      {.note = [&notes](const std::string& note) { notes.push_back(note); }});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().tag, "WL_IMPORT");
  EXPECT_EQ(none.error().message, "t: no row of vmstat -z is left");
  EXPECT_THAT(notes,
              ElementsAre("t:1: skipped: no zone and colon", "t:2: z: skipped: items of 0 bytes"));
}

// REQ: ZIMPORT-14
TEST(ImportVmstatZ, NumbersOfNoMachine) {
  const ImportResult result =
      import("z: 1, 2147483648, 4611686018427387904, 4611686018427387904, 0\n");
  EXPECT_TRUE(told(result, "t:1: z: 4611686018427387904 items are too many to make: none is"));
  EXPECT_THAT(result.text, HasSubstr("zone Z_Z \"z\" size=1\n"));
  EXPECT_THAT(result.text, HasSubstr("# its limit of 2147483648 is beyond a workload's\n"));
  EXPECT_THAT(result.text, Not(HasSubstr("repeat")));
  EXPECT_TRUE(told(import("a: 1, 0, 1, 0, 1\nbig: 16777217, 0, 0, 0, 0\n"),
                   "t:2: big: skipped: items of 16777217 bytes"));
}

// REQ: ZIMPORT-01, ZIMPORT-03
TEST(ImportVmstatZ, ReadsWhatTheReportPrints) {
  report::Snapshot snapshot;
  std::mt19937_64 random(7);
  const std::string names[] = {
      "malloc-16", "64 pcpu",        "zio_data_buf_10485760_and_more", "a:b", "x",
      "\xc3\xa4",  "quote \" and \\"};
  for (int i = 0; i < 200; ++i) {
    ZoneStats zone;
    zone.name = names[random() % std::size(names)];
    const auto any = [&random] { return random() >> (2 + random() % 62); };
    zone.size = any() % 100000 + 1;
    zone.limit = any();
    zone.used = any();
    zone.free = any();
    zone.requests = any();
    zone.fail = any();
    zone.sleep = any();
    zone.xdomain = any();
    snapshot.zones.push_back(zone);
  }
  const struct {
    int format;
    ZoneFormat read;
    std::size_t columns;
  } kFormats[] = {{-1, ZoneFormat::z1, 5},
                  {0, ZoneFormat::z2, 7},
                  {1, ZoneFormat::z3, 8},
                  {2, ZoneFormat::z16, 8}};
  for (const auto& format : kFormats) {
    for (const bool json : {false, true}) {
      if (json && format.format < 1) continue;
      const ZoneTable table =
          json ? read_vmstat_z_json(report::print_vmstat_z_json(snapshot, format.format), "t")
               : read_vmstat_z(report::print_vmstat_z(snapshot, format.format), "t");
      EXPECT_TRUE(table.notes.empty()) << table.notes.front();
      ASSERT_EQ(table.rows.size(), snapshot.zones.size());
      for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const ZoneStats& z = snapshot.zones[i];
        std::vector<std::uint64_t> want{z.size,     z.limit, z.used,  z.free,
                                        z.requests, z.fail,  z.sleep, z.xdomain};
        std::fill(want.begin() + static_cast<std::ptrdiff_t>(format.columns), want.end(), 0);
        EXPECT_EQ(numbers(table.rows[i]), want) << z.name;
        EXPECT_EQ(table.rows[i].name, z.name);
        EXPECT_EQ(table.rows[i].format, format.read);
      }
    }
  }
}

}  // namespace
}  // namespace dtmalloc::workload
