// SPDX-License-Identifier: BSD-2-Clause
// Where memory is: every byte once, from the pages to the types.
#include <gtest/gtest.h>

#include <dtmalloc/report/memory.hpp>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using report::MemoryUse;
using report::take_memory;
using test::Machine;
using test::small_config;

// What holds of a machine without memguard(9) and without history.
void expect_reconciled(Machine& m) {
  const MemoryUse use = take_memory(m.kernel);
  EXPECT_EQ(use.neither(), 0);
  EXPECT_EQ(use.difference(), 0);
  EXPECT_EQ(use.malloc_zones.bytes + use.other_zones.bytes + use.uma.bytes + use.large,
            m.kernel.uma_kmem_total());
  const std::int64_t outside =
      static_cast<std::int64_t>(use.malloc_zones.overhead() + use.malloc_zones.cached +
                                use.malloc_zones.free + use.other_zones.bytes + use.uma.bytes);
  EXPECT_EQ(use.not_in_types(), outside);
  EXPECT_LE(static_cast<std::uint64_t>(use.malloc_zones.used) + use.malloc_zones.cached +
                use.malloc_zones.free,
            use.malloc_zones.bytes);
}

// REQ: MEMORY-01, MEMORY-02
TEST(MemoryReport, EveryByteStandsOnce) {
  Machine m(small_config(2));
  expect_reconciled(m);
  std::vector<void*> blocks;
  for (const std::size_t size : {1, 100, 260, 4096, 65536, 65537, 300000})
    for (int i = 0; i < 40; ++i) blocks.push_back(m.kernel.malloc(size, &m.type, M_WAITOK));
  void* const contiguous = m.kernel.contigmalloc(5000, &m.type, M_WAITOK);
  expect_reconciled(m);
  const MemoryUse full = take_memory(m.kernel);
  EXPECT_EQ(full.large, 40u * (69632 + 303104));
  EXPECT_EQ(full.contiguous, 8192u);
  EXPECT_EQ(full.malloc_zones.used, 40 * (16 + 128 + 384 + 4096 + 65536));
  EXPECT_EQ(full.types, full.malloc_zones.used + static_cast<std::int64_t>(full.large + 8192));
  for (void* block : blocks) m.kernel.free(block, &m.type);
  m.kernel.free(contiguous, &m.type);
  expect_reconciled(m);
  const MemoryUse empty = take_memory(m.kernel);
  EXPECT_EQ(empty.types, 0);
  EXPECT_EQ(empty.malloc_zones.used, 0);
  EXPECT_EQ(empty.large, 0u);
  EXPECT_GE(empty.idle(), 40u * 65536);
  uma_reclaim(m.kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
  expect_reconciled(m);
  EXPECT_EQ(take_memory(m.kernel).malloc_zones.bytes, 0u);
}

// REQ: MEMORY-02
TEST(MemoryReport, HistoryIsADifference) {
  Machine m;
  m.kernel.add_history(m.type, {.memalloced = 5000, .numallocs = 1});
  const MemoryUse use = take_memory(m.kernel);
  EXPECT_EQ(use.difference(), -5000);
  EXPECT_EQ(use.types, 5000);
}

// REQ: MEMORY-02. An item that was freed twice is in a bucket twice; the sums hold.
TEST(MemoryReport, ADoubleFreeIsBelowZero) {
  Machine m;
  void* const block = m.kernel.malloc(100, &m.type, M_WAITOK);
  m.kernel.free(block, &m.type);
  m.kernel.free(block, &m.type);
  const MemoryUse use = take_memory(m.kernel);
  EXPECT_EQ(use.malloc_zones.used, -128);
  EXPECT_EQ(use.types, -128);
  EXPECT_EQ(use.difference(), 0);
  EXPECT_EQ(use.neither(), 0);
  EXPECT_LT(use.malloc_zones.overhead(), use.malloc_zones.bytes);
}

// REQ: MEMORY-03
TEST(MemoryReport, TextAndJson) {
  MemoryUse use;
  use.physical = 40960;
  use.free = 8192;
  use.malloc_zones = {.bytes = 8192, .used = 1000, .cached = 2000, .free = 3000, .empty = 4096};
  use.uma = {.bytes = 4096, .used = 80, .cached = 0, .free = 3200, .empty = 0};
  use.large = 16384;
  use.types = 17000;
  EXPECT_EQ(
      print_memory(use),
      "Memory                    Bytes\n"
      "free                       8192\n"
      "slabs of malloc zones      8192\n"
      "slabs of other zones          0\n"
      "slabs of UMA's own zones   4096\n"
      "large blocks              16384\n"
      "contiguous blocks             0\n"
      "neither                    4096\n"
      "Total                     40960\n"
      "\n"
      "Slabs   Bytes  Used  In buckets  Free  Overhead  In empty slabs\n"
      "malloc   8192  1000        2000  3000      2192            4096\n"
      "other       0     0           0     0         0               0\n"
      "uma      4096    80           0  3200       816               0\n"
      "\n"
      "Malloc types                           Bytes\n"
      "in malloc zones, large and contiguous  17384\n"
      "counted by the types                   17000\n"
      "difference                               384\n"
      "\n"
      "15768 of 32768 bytes in use, 48%, are in no malloc type; 8200 bytes are idle in UMA, 4096 "
      "in empty slabs: a reclaim gives back the slabs that are empty when the buckets are\n");
  EXPECT_EQ(
      print_memory_json(use),
      R"({"memory":{"physical":40960,"free":8192,"used":32768,"slabs":[)"
      R"({"zones":"malloc","bytes":8192,"used":1000,"in-buckets":2000,"free":3000,)"
      R"("overhead":2192,"empty":4096},)"
      R"({"zones":"other","bytes":0,"used":0,"in-buckets":0,"free":0,"overhead":0,"empty":0},)"
      R"({"zones":"uma","bytes":4096,"used":80,"in-buckets":0,"free":3200,"overhead":816,)"
      R"("empty":0}],"large":16384,"contiguous":0,"neither":4096,"types":17000,)"
      R"("difference":384,"not-in-types":15768,"idle":8200}})"
      "\n");
}

}  // namespace
}  // namespace dtmalloc
