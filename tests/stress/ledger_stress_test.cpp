// SPDX-License-Identifier: BSD-2-Clause
// The ledger under real threads that hand blocks to each other while another reads it.
//
// Environment:  DTM_SEED (the first seed).
#include <gtest/gtest.h>

#include <atomic>
#include <dtmalloc/kernel.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "support/op_gen.hpp"
#include "workload/random.hpp"

namespace dtmalloc {
namespace {

constexpr int kThreads = 3;
constexpr int kOperations = 4000;

struct Shelf {
  std::mutex mutex;
  std::vector<void*> blocks;
};

void work(Kernel& kernel, int cpu, const std::vector<malloc_type*>& types, Shelf& shelf,
          std::uint64_t seed) {
  kernel.cpus().bind(cpu);
  kernel.cpus().current_thread().call_sites = {"worker" + std::to_string(cpu)};
  workload::Random random(seed);
  for (int i = 0; i < kOperations; ++i) {
    malloc_type* type = types[random.below(types.size())];
    void* block = nullptr;
    switch (random.below(4)) {
      case 0:
        block = kernel.malloc(random.below(3000), type, M_WAITOK);
        break;
      case 1:
        block = kernel.malloc(random.below(100000), type, M_NOWAIT);
        break;
      case 2: {
        const std::lock_guard lock(shelf.mutex);
        if (shelf.blocks.empty()) continue;
        block = shelf.blocks.back();
        shelf.blocks.pop_back();
        block = kernel.realloc(block, random.below(5000), type, M_WAITOK);
        break;
      }
      default: {
        {
          const std::lock_guard lock(shelf.mutex);
          if (shelf.blocks.empty()) continue;
          const std::size_t at = random.below(shelf.blocks.size());
          block = std::exchange(shelf.blocks[at], shelf.blocks.back());
          shelf.blocks.pop_back();
        }
        kernel.free(block, type);
        continue;
      }
    }
    if (block == nullptr) continue;
    const std::lock_guard lock(shelf.mutex);
    shelf.blocks.push_back(block);
  }
  kernel.cpus().current_thread().call_sites.clear();
  kernel.cpus().unbind();
}

TEST(LedgerStress, SumsAreTheKernels) {
  // REQ: LEDGER-18 LEDGER-1
  KernelConfig config;
  config.cpus = kThreads + 1;
  config.mem = std::uint64_t{1} << 30;
  config.mode = RunMode::parallel;
  config.ledger.emplace();
  config.ledger->series = 1000000;
  Kernel kernel(config);
  const std::vector<malloc_type*> types{&kernel.define_type("M_A", "a"),
                                        &kernel.define_type("M_B", "b")};
  std::atomic<std::uint64_t> heard{0};
  kernel.ledger()->on_finding([&](const Finding& finding) {
    EXPECT_EQ(finding.kind, Finding::Kind::wrong_type);
    ++heard;
  });
  Shelf shelf;
  const std::uint64_t seed = support::seeds(1).first;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      work(kernel, i, types, shelf, seed * 10 + static_cast<std::uint64_t>(i));
      --running;
    });
  while (running != 0) {
    std::int64_t blocks = 0;
    for (const LedgerType& type : kernel.ledger()->types()) blocks += type.peak_blocks;
    EXPECT_GE(blocks, 0);
    kernel.ledger()->findings();
    kernel.ledger()->live();
  }
  for (std::thread& thread : threads) thread.join();

  const auto sums_are_equal = [&] {
    for (const malloc_type* type : types) {
      const TypeStats stats = kernel.type_stats(*type);
      const LedgerType books = kernel.ledger()->type(*type);
      EXPECT_EQ(books.blocks, static_cast<std::int64_t>(stats.numallocs - stats.numfrees));
      EXPECT_EQ(books.bytes, static_cast<std::int64_t>(stats.memalloced - stats.memfreed));
      EXPECT_GE(books.peak_bytes, books.bytes);
      EXPECT_EQ(books.all_blocks, stats.numallocs);
      EXPECT_EQ(books.all_bytes, stats.memalloced);
    }
  };
  sums_are_equal();
  EXPECT_EQ(kernel.ledger()->live().size(), shelf.blocks.size());
  kernel.cpus().bind(kThreads);
  for (void* block : shelf.blocks) kernel.free(block, types[0]);
  sums_are_equal();
  EXPECT_TRUE(kernel.ledger()->live().empty());
  std::uint64_t found = 0;
  for (const Finding& finding : kernel.ledger()->findings()) found += finding.count;
  EXPECT_EQ(found, heard.load());
  EXPECT_GT(found, 0u);
  kernel.cpus().unbind();
}

}  // namespace
}  // namespace dtmalloc
