// SPDX-License-Identifier: BSD-2-Clause
// Reading tables of vmstat -m, and choosing blocks that explain a row.
#include <gtest/gtest.h>

#include <ctime>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <fstream>
#include <numeric>
#include <sstream>

#include "support/paths.hpp"

namespace dtmalloc::workload {
namespace {

std::string capture(const std::string& name) {
  std::ifstream in(dtmalloc::support::source_dir() + "/tests/golden/cases/vmstat-m/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Totals {
  const char* file;
  std::size_t rows;
  std::uint64_t inuse, memuse, requests;
};

// REQ: VMSTAT-10
TEST(ReadVmstat, CountsTheCaptures) {
  const Totals cases[] = {{"01.txt", 21, 2023, 4173, 2211758563},
                          {"02.txt", 30, 385, 4257, 69323},
                          {"04.txt", 24, 304, 505, 352},
                          {"05.txt", 30, 9303, 16558, 129439},
                          {"15.txt", 9, 440, 111, 623},
                          {"07.txt", 1, 1, 1, 1},
                          {"12.txt", 3, 337, 62, 339},
                          {"10.txt", 2, 1, 4, 8},
                          {"06.txt", 4, 2485, 781, 7236},
                          {"09.txt", 1, 1, 1, 1}};
  for (const Totals& expected : cases) {
    const VmstatTable table = read_vmstat_m(capture(expected.file), expected.file);
    std::uint64_t inuse = 0, memuse = 0, requests = 0;
    for (const VmstatRow& row : table.rows) {
      inuse += row.inuse;
      memuse += row.memuse_kib;
      requests += row.requests;
    }
    EXPECT_EQ(table.rows.size(), expected.rows) << expected.file;
    EXPECT_EQ(inuse, expected.inuse) << expected.file;
    EXPECT_EQ(memuse, expected.memuse) << expected.file;
    EXPECT_EQ(requests, expected.requests) << expected.file;
  }
}

// REQ: VMSTAT-11
TEST(ReadVmstat, TellsTheFormatsApartByTheRow) {
  const auto row = [](std::string_view line) {
    const VmstatTable table = read_vmstat_m(line, "t");
    EXPECT_EQ(table.rows.size(), 1u) << line << (table.notes.empty() ? "" : table.notes[0]);
    return table.rows.empty() ? VmstatRow{} : table.rows[0];
  };
  const VmstatRow m2 = row("      CAM XPT   450    42K       -  4173986  16,32,65536\n");
  EXPECT_EQ(m2.name, "CAM XPT");
  EXPECT_EQ(m2.format, VmstatFormat::m2);
  EXPECT_EQ(m2.sizes, (std::vector<std::uint32_t>{16, 32, 65536}));
  const VmstatRow m3 = row("    ufs_quota     1  4096K        1  \n");
  EXPECT_EQ(m3.format, VmstatFormat::m3);
  EXPECT_TRUE(m3.sizes.empty());
  const VmstatRow m1 = row("       devbuf  1234   567K    890K     4321  16,32\n");
  EXPECT_EQ(m1.format, VmstatFormat::m1);
  EXPECT_EQ(m1.inuse, 1234u);
  EXPECT_EQ(m1.memuse_kib, 567u);
  EXPECT_EQ(m1.requests, 4321u);
  // Columns that fill their width touch.
  const VmstatRow glued = row("       devbuf123456789012K1234567K123456789  16,32\n");
  EXPECT_EQ(glued.name, "devbuf");
  EXPECT_EQ(glued.inuse, 123456u);
  EXPECT_EQ(glued.memuse_kib, 789012u);
  EXPECT_EQ(glued.requests, 123456789u);
  EXPECT_EQ(row("    80211node     2    65K       -        9  16,1024,65536").name, "80211node");
  EXPECT_EQ(row("-        linux  2376   762K       -     7115  16").side, '-');
  EXPECT_EQ(row("CAM SIM 1 1K - 1 256 | |").name, "CAM SIM");
  EXPECT_EQ(row("a b 1 2 3 4K - 5 16").name, "a b 1 2");
}

// REQ: VMSTAT-12
TEST(ReadVmstat, NamesMalformedRowsByLine) {
  const VmstatTable table = read_vmstat_m(
      "Type InUse MemUse HighUse Requests  Size(s)\n ok 1 1K - 1 16\nno numbers at all\n"
      "  cut 5\n  ok2 1 1K - 99999999999999999999 16\n...\n",
      "f");
  EXPECT_EQ(table.rows.size(), 1u);
  ASSERT_EQ(table.notes.size(), 4u);
  EXPECT_TRUE(table.notes[0].starts_with("f:3: skipped")) << table.notes[0];
  EXPECT_TRUE(table.notes[1].starts_with("f:4: skipped")) << table.notes[1];
  EXPECT_TRUE(table.notes[2].starts_with("f:5: skipped")) << table.notes[2];
  EXPECT_TRUE(table.notes[3].starts_with("f:6: ")) << table.notes[3];
}

std::uint64_t bytes_of(const BlockChoice& choice, const std::vector<std::uint32_t>& classes) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) bytes += choice.per_class[i] * classes[i];
  for (const std::uint64_t pages : choice.pages) bytes += pages * 4096;
  return bytes;
}

// REQ: VMSTAT-13
TEST(ChooseBlocks, ExplainsEveryRowOfTheCaptures) {
  for (const char* file : {"01.txt", "02.txt", "04.txt", "05.txt", "06.txt", "12.txt", "15.txt"}) {
    for (const VmstatRow& row : read_vmstat_m(capture(file), file).rows) {
      const auto choice = choose_blocks(row.inuse, MemoryRange::of_kib(row.memuse_kib), row.sizes,
                                        row.requests - row.inuse);
      ASSERT_TRUE(choice) << file << ": " << row.name;
      const std::uint64_t blocks =
          std::accumulate(choice->per_class.begin(), choice->per_class.end(), choice->pages.size());
      EXPECT_EQ(blocks, row.inuse) << row.name;
      EXPECT_EQ((bytes_of(*choice, row.sizes) + 1023) / 1024, row.memuse_kib) << row.name;
      EXPECT_TRUE(choice->all_classes_seen) << row.name;
    }
  }
}

TEST(ChooseBlocks, FindsTheFewestLargeBlocks) {
  const auto vtbuf = choose_blocks(24, MemoryRange::of_kib(1968), {4096}, 22);
  ASSERT_TRUE(vtbuf);
  EXPECT_EQ(vtbuf->pages, std::vector<std::uint64_t>{469});  // 1876K
  const auto newblk = choose_blocks(3, MemoryRange::of_kib(6144), {}, 0);
  ASSERT_TRUE(newblk);
  EXPECT_EQ(newblk->pages, (std::vector<std::uint64_t>{512, 512, 512}));
  const auto pagedep = choose_blocks(4, MemoryRange::of_kib(769), {256}, 0);
  ASSERT_TRUE(pagedep);
  EXPECT_EQ(pagedep->per_class, std::vector<std::uint64_t>{3});
  EXPECT_EQ(pagedep->pages, std::vector<std::uint64_t>{192});  // a table of 768K
}

TEST(ChooseBlocks, RefusesContradictions) {
  EXPECT_FALSE(choose_blocks(24, MemoryRange::of_kib(1), {4096}, 0));
  EXPECT_FALSE(choose_blocks(0, MemoryRange::of_kib(3), {16}, 3));
  EXPECT_FALSE(choose_blocks(3, MemoryRange::of_kib(0), {16}, 0));
  EXPECT_FALSE(choose_blocks(1000000000, MemoryRange::of_kib(1), {16}, 0));
}

// REQ: VMSTAT-18
TEST(ChooseBlocks, BytesToTheByte) {
  const std::vector<std::uint32_t> classes{16, 32, 64};
  const auto choice = choose_blocks(10, MemoryRange::exactly(400), classes, 10);
  ASSERT_TRUE(choice);
  EXPECT_EQ(bytes_of(*choice, classes), 400u);
  EXPECT_FALSE(choose_blocks(10, MemoryRange::exactly(401), classes, 10));
  EXPECT_FALSE(choose_blocks(3, MemoryRange::exactly(160), {32, 128}, 9));
}

// REQ: VMSTAT-19
TEST(ChooseBlocks, HopelessRowsCostLittle) {
  std::clock_t spent = 0;
  const std::vector<std::uint32_t> all{16,   32,   64,   128,  256,   384,   512,
                                       1024, 2048, 4096, 8192, 16384, 32768, 65536};
  std::string table;
  for (int i = 0; i < 3000; ++i) {
    std::string sizes;
    for (std::size_t c = 0; c < all.size(); ++c)
      if (((i + 1) * 2654435761u >> c & 1) == 0)
        sizes += (sizes.empty() ? "" : ",") + std::to_string(all[c]);
    const std::uint64_t count = i % 3 == 0 ? 1000000000000 : i % 3 == 1 ? 200000 + i : 20 + i % 50;
    const std::uint64_t kib = i % 3 == 0   ? 1000000000000
                              : i % 3 == 1 ? 40000000 + 13 * i
                                           : 3 + i % 7;
    table += " t" + std::to_string(i) + ' ' + std::to_string(count) + ' ' + std::to_string(kib) +
             "K " + std::to_string(count + i % 9) + ' ' + sizes + '\n';
    // The same with bytes that no blocks have, odd ones.
    const auto start = std::clock();
    EXPECT_FALSE(choose_blocks(count, MemoryRange::exactly(kib * 1024 - 1), all, i % 20));
    spent += std::clock() - start;
  }
  const auto start = std::clock();
  EXPECT_TRUE(import_vmstat_m(table, "t", {}));
  spent += std::clock() - start;
  // Some tenths of a second; ten times that for sanitizers.
  EXPECT_LT(static_cast<double>(spent) / CLOCKS_PER_SEC, 8.0);
}

// REQ: VMSTAT-19
TEST(ImportVmstat, BillionsAreNotMade) {
  const auto imported = import_vmstat_m(
      " many 300000000 4687500K 300000000 16\n big 1 2000000000K 1\n ok 1 1K 4000000001 16\n", "t",
      {.replay_history = true});
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->text.find("repeat"), std::string::npos) << imported->text;
  ASSERT_EQ(imported->notes.size(), 3u);
  EXPECT_EQ(imported->notes[0],
            "t:1: many: 300000000 blocks in 4687500K are too many to make: none is; the row enters "
            "as statistics only");
  EXPECT_EQ(imported->notes[1],
            "t:2: big: 1 block in 2000000000K are too many to make: none is; the row enters as "
            "statistics only");
  EXPECT_EQ(imported->notes[2],
            "t:3: ok: 4000000000 past requests are too many to replay: they are history");
}

// REQ: VMSTAT-14
TEST(ImportVmstat, ChoosesTheReleaseByEvidence) {
  const auto release = [](const char* file) {
    auto imported = import_vmstat_m(capture(file), file, {});
    EXPECT_TRUE(imported);
    auto w = parse(imported->text, file);
    EXPECT_TRUE(w) << to_string(w.error());
    return *w->kernel.release;
  };
  EXPECT_EQ(release("01.txt"), 12);
  EXPECT_EQ(release("02.txt"), 14);
  EXPECT_EQ(release("05.txt"), 14);
}

// REQ: VMSTAT-15
TEST(ImportVmstat, KeepsEqualNamesApart) {
  auto imported = import_vmstat_m(capture("06.txt"), "06.txt", {});
  ASSERT_TRUE(imported);
  EXPECT_NE(imported->text.find("type M_LINUX \"linux\""), std::string::npos);
  EXPECT_NE(imported->text.find("type M_LINUX_2 \"linux\""), std::string::npos);
}

TEST(ImportVmstat, TellsWhatADiffChanged) {
  auto imported = import_vmstat_m(
      "-        linux  2376   762K       -     7115  16,32,64,128,256,512,1024,2048\n"
      "+        linux 18527 16250K       -   434560  16,32,64,128,256,512,1024,2048\n",
      "d", {});
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->rows, 1u);
  ASSERT_FALSE(imported->notes.empty());
  EXPECT_NE(imported->notes[0].find("+16151 blocks, +15488K, +427445 requests"), std::string::npos)
      << imported->notes[0];
}

// REQ: VMSTAT-16
TEST(ImportVmstat, FailsOnlyWhenNoRowIsLeft) {
  EXPECT_FALSE(import_vmstat_m("nothing here\n", "f", {}));
  EXPECT_FALSE(import_vmstat_m("", "f", {}));
  EXPECT_TRUE(import_vmstat_m("nothing here\n ok 1 1K - 1 16\n", "f", {}));
}

TEST(ImportVmstat, SaysWhatWasChosen) {
  auto imported = import_vmstat_m(capture("01.txt"), "01.txt", {});
  ASSERT_TRUE(imported);
  EXPECT_NE(imported->text.find("24 blocks: at least 1 large"), std::string::npos);
}

}  // namespace
}  // namespace dtmalloc::workload
