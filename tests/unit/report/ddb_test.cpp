// SPDX-License-Identifier: BSD-2-Clause
// What ddb(4) shows of types and zones, byte for byte.
#include <dtmalloc/kern/malloc_type.h>
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {
namespace {

TypeRow type(const char* name, std::uint64_t alloced, std::uint64_t freed, std::uint64_t allocs,
             std::uint64_t frees, int subzone = 0) {
  return {name, alloced, freed, allocs, frees, 0, subzone};
}

Snapshot types() {
  Snapshot s;  // oldest first
  s.types = {type("small", 48, 16, 3, 1), type("idle", 0, 0, 0, 0), type("minus", 0, 128, 0, 1),
             type("even", 40, 8, 2, 1), type("large", 1 << 20, 1, 7, 0)};
  return s;
}

// REQ: DDB-01, DDB-03, DDB-04
TEST(Ddb, ShowMalloc) {
  EXPECT_EQ(print_ddb_malloc(types(), false),
            "              Type        InUse        MemUse     Requests\n"
            "             large            7         1024K            7\n"
            "              even            1            1K            2\n"
            "             small            2            1K            3\n"
            "              idle            0            0K            0\n");
}

// REQ: DDB-02, DDB-03, DDB-04
TEST(Ddb, ShowMallocForImport) {
  EXPECT_EQ(print_ddb_malloc(types(), true),
            "Type,InUse,MemUse,Requests\n"
            "\"large\",7,1024K,7\n"
            "\"even\",1,1K,2\n"
            "\"small\",2,1K,3\n"
            "\"idle\",0,0K,0\n");
}

ZoneStats zone(const char* name, std::uint64_t size, std::uint64_t allocs, std::uint64_t frees,
               std::uint64_t free) {
  ZoneStats out;
  out.name = name;
  out.size = size;
  out.allocs = allocs;
  out.frees = frees;
  out.free = free;
  out.bucket_size = 16;
  return out;
}

Snapshot zones() {
  Snapshot s;  // in vmstat -z's order
  s.zones = {zone("cache one", 100, 9, 4, 7), zone("cache two", 50, 1, 0, 0),
             zone("older", 64, 10, 6, 12),    zone("newer", 32, 40, 10, 2),
             zone("largest", 4096, 5, 1, 3),  zone("empty", 8, 0, 0, 0)};
  for (int i : {0, 1}) s.zones[static_cast<std::size_t>(i)].flags = UMA_ZFLAG_CACHE;
  s.zones[4].sleep = 3;
  s.zones[4].xdomain = 5;
  s.zones[4].cpus = {{2, 1, 3, 2}, {3, 0, 1, 1}};
  return s;
}

// REQ: DDB-05, DDB-07, DDB-08
TEST(Ddb, ShowUma) {
  EXPECT_EQ(print_ddb_uma(zones(), false),
            "              Zone   Size    Used    Free    Requests  Sleeps  Bucket  Total Mem    "
            "XFree\n"
            "           largest   4096       4       3           5       3      16      28672      "
            "  8\n"
            "             newer     32      30       2          40       0      16       1024      "
            "  0\n"
            "             older     64       4      12          10       0      16       1024      "
            "  0\n"
            "             empty      8       0       0           0       0      16          0      "
            "  0\n");
}

// REQ: DDB-06
TEST(Ddb, ShowUmaForImport) {
  const std::string table = print_ddb_uma(zones(), true);
  EXPECT_EQ(table.substr(0, table.find("\"newer")),
            "Zone,Size,Used,Free,Requests,Sleeps,Bucket,Total Mem,XFree\n"
            "\"largest\",4096,4,3,5,3,16,28672,8\n");
}

// REQ: DDB-10
TEST(Ddb, ShowUmacache) {
  EXPECT_EQ(print_ddb_umacache(zones()),
            "              Zone     Size     Used     Free     Requests   Bucket\n"
            "         cache two       50        1        0            1       16\n"
            "         cache one      100        5        7            9       16\n");
}

// REQ: DDB-11
TEST(Ddb, ShowMultizoneMatches) {
  Snapshot s;
  s.types = {type("a", 0, 0, 0, 0, 1), type("b", 0, 0, 0, 0, 2), type("c", 0, 0, 0, 0, 1)};
  malloc_type asked{};
  asked.ks_version = M_VERSION;
  asked.ks_mti.mti_zone = 1;
  EXPECT_EQ(print_ddb_multizone(s, asked), "c\na\n");
  asked.ks_version = 0x1234;
  EXPECT_EQ(print_ddb_multizone(s, asked), "Version 1234 does not match expected 78a4e729\n");
}

}  // namespace
}  // namespace dtmalloc::report
