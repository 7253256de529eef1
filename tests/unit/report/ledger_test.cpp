// SPDX-License-Identifier: BSD-2-Clause
// The tables of the ledger, from plain data.

#include <gtest/gtest.h>

#include <dtmalloc/report/ledger.hpp>

#include "report/table.hpp"

namespace dtmalloc::report {
namespace {

LedgerType type(const std::string& name, std::int64_t blocks, std::int64_t bytes) {
  LedgerType out;
  out.name = name;
  out.blocks = blocks;
  out.bytes = bytes;
  return out;
}

// Two live blocks of "a b", one of which was freed as "c" meanwhile.
Books books() {
  Books out;
  out.now = 5000;
  out.types = {type("a b", 2, 256), type("c", -1, -128)};
  out.types[0].all_blocks = 2;
  out.types[0].all_bytes = 256;
  out.types[0].all_requested = 170;
  out.types[0].requested = 70;
  out.types[0].peak_blocks = 2;
  out.types[0].peak_blocks_time = 30;
  out.types[0].peak_bytes = 256;
  out.types[0].peak_bytes_time = 30;
  out.total = type("Total", 1, 128);
  LeakSite site;
  site.type = "a b";
  site.zone = "malloc-128";
  site.stack = {"inner", "outer"};
  site.blocks = 1;
  site.bytes = 128;
  site.requested = 70;
  site.age = 4000;
  site.address = 0xfffff80000001000;
  site.first = 1;
  out.sites = {site};
  LedgerMismatch pair;
  pair.allocated_as = "a b";
  pair.freed_as = "c";
  pair.blocks = 1;
  pair.bytes = 128;
  pair.first_allocated.stack = {"x"};
  out.mismatches = {pair};
  return out;
}

TEST(Table, ColumnsAreAsWideAsWhatIsInThem) {
  Table table({"-Name", "N", "-Text"});
  EXPECT_TRUE(table.empty());
  table.row({"long name", "1", "x"});
  table.row({"b", "1000", ""});
  EXPECT_EQ(table.text(),
            "Name          N  Text\n"
            "long name     1  x\n"
            "b          1000\n");
}

TEST(LedgerReport, Leaks) {
  // REQ: LEDGER-6
  EXPECT_EQ(print_leaks(books(), LeaksBy::type),
            "Type   Blocks  Bytes  Request  Oldest(ns)\n"
            "a b         2    256       70        4000\n"
            "c          -1   -128        -           -  more was freed than allocated\n"
            "Total       1    128       70        4000\n"
            "\n"
            "Blocks  Bytes  Request  Oldest(ns)  Type  Call site\n"
            "     1    128       70        4000  a b   inner < outer\n"
            "\n"
            "Freed under another type\n"
            "Blocks  Bytes  Allocated as  Freed as  First allocated at  First freed at\n"
            "     1    128  a b           c         x                   (no call site)\n");
}

TEST(LedgerReport, LeaksByStackHasTheColumnsOfFindleaks) {
  Books plain = books();
  plain.mismatches.clear();
  EXPECT_EQ(print_leaks(plain, LeaksBy::stack),
            "ZONE        LEAKED  BYTES  REQUEST               BLOCK  TYPE  CALLER\n"
            "malloc-128       1    128       70  0xfffff80000001000  a b   inner < outer\n"
            "Total            1    128       70\n");
}

TEST(LedgerReport, OneTypeOnly) {
  // REQ: LEDGER-20
  EXPECT_EQ(print_leaks(books(), LeaksBy::stack, "nobody"), "no live blocks of nobody\n");
  EXPECT_EQ(print_peaks(books(), "a b"),
            "Type  Blocks  At(ns)  Bytes  At(ns)  Blocks now  Bytes now\n"
            "a b        2      30    256      30           2        256\n");
  EXPECT_EQ(print_peaks(books(), "nobody"), "no allocations of nobody\n");
}

TEST(LedgerReport, Waste) {
  // REQ: LEDGER-16
  EXPECT_EQ(print_waste(books(), "a b"),
            "Type  In use  Bytes  Request  Requests  Requested  Given  Waste  Percent\n"
            "a b        2    256       70         2        170    256     86    33.59\n"
            "\n"
            "Freed under another type\n"
            "Blocks  Bytes  Allocated as  Freed as  First allocated at  First freed at\n"
            "     1    128  a b           c         x                   (no call site)\n");
}

TEST(LedgerReport, WhatHasNoAddressIsSaid) {
  // REQ: LEDGER-14
  Books manual;
  manual.types = {type("m", 1, 1000)};
  manual.types[0].manual_blocks = 1;
  manual.types[0].manual_bytes = 1000;
  EXPECT_EQ(print_leaks(manual, LeaksBy::type),
            "Type   Blocks  Bytes  Request  Oldest(ns)\n"
            "m           1   1000        -           -  1000 bytes have no address\n"
            "Total       1   1000        0           0\n");
}

TEST(LedgerReport, WhatTheBoundsShutOutIsSaid) {
  // REQ: LEDGER-5
  Books full;
  full.dropped.blocks = 3;
  full.dropped.stacks = 4;
  full.dropped.findings = 5;
  full.bounds.blocks = 10;
  full.bounds.stacks = 20;
  full.bounds.findings = 0;
  EXPECT_EQ(print_leaks(full, LeaksBy::type),
            "no live blocks\n"
            "note: 3 blocks beyond the ledger's 10 have no record: counted, no site\n"
            "note: the table of 20 call stacks was full: 4 events are under \"other\"\n");
  EXPECT_EQ(print_findings(full),
            "no findings\nnote: 5 findings beyond the ledger's 0 are not shown\n"
            "note: 3 blocks beyond the ledger's 10 have no record: what happened to them is not "
            "looked at\n");
}

TEST(LedgerReport, SeriesIsCsv) {
  // REQ: LEDGER-15
  Books data;
  data.series.interval = 10;
  data.series.types = {"plain", "with, comma", "a \"quote\""};
  data.series.samples = {{10, {1, -2, 3}}};
  EXPECT_EQ(print_series(data), "time_ns,plain,\"with, comma\",\"a \"\"quote\"\"\"\n10,1,-2,3\n");
  EXPECT_EQ(
      print_series_json(data),
      "{\"series\":{\"interval\":10,\"types\":[\"plain\",\"with, comma\",\"a \\\"quote\\\"\"],"
      "\"samples\":[{\"time\":10,\"bytes\":[1,-2,3]}]}}\n");
}

TEST(LedgerReport, HistoryOfNothing) {
  AddressHistory history;
  history.name = "a";
  EXPECT_EQ(print_history(history), "history of a: it is null\n");
  history.address = 0xfffff80000001000;
  EXPECT_EQ(print_history(history),
            "history of a, 0xfffff80000001000\nno block of malloc(9) began here\n");
}

}  // namespace
}  // namespace dtmalloc::report
