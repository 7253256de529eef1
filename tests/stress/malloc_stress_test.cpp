// SPDX-License-Identifier: BSD-2-Clause
// Real threads, each on its own CPU, with every kind of request, handing blocks to each other while
// another thread takes snapshots. Totals are exact at the end; also runs under ThreadSanitizer.
//
// Environment:  DTM_SEED (the first seed).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/report/report.hpp>
#include <dtmalloc/testing/probe_log.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "reference/flat_malloc.hpp"
#include "support/laws.hpp"
#include "support/op_gen.hpp"
#include "workload/random.hpp"

namespace dtmalloc {
namespace {

using reference::FlatMalloc;
using workload::Random;

constexpr int kThreads = 3;
constexpr int kTypes = 2;
constexpr std::uint64_t kOperations = 10000;

struct Block {
  unsigned char* address = nullptr;
  std::uint64_t size = 0;  // usable
  int type = 0;
};

// Where blocks change hands.
class Shelf {
 public:
  void put(const Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
  }
  Block take(std::uint64_t at) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return {};
    std::swap(blocks_[at % blocks_.size()], blocks_.back());
    const Block block = blocks_.back();
    blocks_.pop_back();
    return block;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

// What one thread did, by type.
struct Books {
  std::array<reference::FlatStats, kTypes> types;
  int wrong_contents = 0;
};

class Worker {
 public:
  Worker(Kernel& kernel, const std::vector<malloc_type*>& types, Shelf& shelf, std::uint64_t seed)
      : kernel_(kernel), types_(types), shelf_(shelf), random_(seed) {}

  void run() {
    for (std::uint64_t i = 0; i < kOperations; ++i) {
      switch (random_.below(8)) {
        case 0:
        case 1:
        case 2:
          own_.push_back(allocate());
          break;
        case 3:
          reallocate();
          break;
        case 4:
          if (!own_.empty()) shelf_.put(take_own());
          break;
        case 5:
          release(shelf_.take(random_.next()));
          break;
        default:
          if (!own_.empty()) release(take_own());
      }
    }
    for (const Block& block : own_) shelf_.put(block);
  }

  void release(const Block& block) {
    if (block.address == nullptr) return;
    check(block);
    book(block.type).memfreed += block.size;
    book(block.type).numfrees += 1;
    if (random_.below(4) == 0) {
      kernel_.zfree(block.address, types_[static_cast<std::size_t>(block.type)]);
    } else {
      kernel_.free(block.address, types_[static_cast<std::size_t>(block.type)]);
    }
  }
  const Books& books() const { return books_; }

 private:
  reference::FlatStats& book(int type) { return books_.types[static_cast<std::size_t>(type)]; }

  std::uint64_t size() {
    const std::uint64_t kind = random_.below(20);
    if (kind == 0) return 60000 + random_.below(60000);
    return random_.below(kind < 4 ? 9000 : 300);
  }

  Block take_own() {
    std::swap(own_[random_.below(own_.size())], own_.back());
    const Block block = own_.back();
    own_.pop_back();
    return block;
  }

  Block allocate() {
    const int type = static_cast<int>(random_.below(kTypes));
    malloc_type* mtp = types_[static_cast<std::size_t>(type)];
    const std::uint64_t kind = random_.below(16), bytes = size();
    Block block{nullptr, 0, type};
    if (kind == 0) {
      block.address = static_cast<unsigned char*>(kernel_.contigmalloc(bytes | 1, mtp, M_WAITOK));
    } else if (kind == 1) {
      block.address = static_cast<unsigned char*>(kernel_.malloc(bytes, mtp, M_NOWAIT | M_ZERO));
    } else {
      block.address = static_cast<unsigned char*>(kernel_.malloc(bytes, mtp, M_WAITOK));
    }
    return enter(block, kind == 0);
  }

  // Books a new block and writes its owner's mark.
  Block enter(Block block, bool pages) {
    block.size = kernel_.malloc_usable_size(block.address);
    reference::FlatStats& stats = book(block.type);
    stats.memalloced += block.size;
    stats.numallocs += 1;
    const auto [zindx, rounded] = model_.classify(block.size);
    if (!pages && zindx != -1) stats.mask |= std::uint64_t{1} << zindx;
    mark(block);
    return block;
  }

  void reallocate() {
    if (own_.empty()) return;
    Block block = take_own();
    check(block);
    if (kernel_.addresses().to_simulated(block.address) % kPageSize == 0) {
      // It may be contiguous, which realloc() refuses.
      own_.push_back(block);
      return;
    }
    const std::uint64_t bytes = size();
    const Block old = block;
    block.address = static_cast<unsigned char*>(
        kernel_.realloc(old.address, bytes, types_[static_cast<std::size_t>(old.type)], M_WAITOK));
    if (block.address != old.address) {
      block = enter(block, false);
      book(old.type).memfreed += old.size;
      book(old.type).numfrees += 1;
    }
    own_.push_back(block);
  }

  static void mark(const Block& block) {
    std::memcpy(block.address, &block.address, sizeof(void*));
    std::memcpy(block.address + block.size - sizeof block.address, &block.address,
                sizeof block.address);
  }
  void check(const Block& block) {
    if (std::memcmp(block.address, &block.address, sizeof(void*)) != 0 ||
        std::memcmp(block.address + block.size - sizeof block.address, &block.address,
                    sizeof block.address) != 0) {
      ++books_.wrong_contents;
    }
  }

  Kernel& kernel_;
  const std::vector<malloc_type*>& types_;
  Shelf& shelf_;
  Random random_;
  FlatMalloc model_;
  std::vector<Block> own_;
  Books books_;
};

// What a snapshot taken at any moment must say.
void check_snapshot(Kernel& kernel, const std::vector<malloc_type*>& types,
                    std::vector<TypeStats>& before) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    const TypeStats now = kernel.type_stats(*types[i]);
    EXPECT_GE(now.numallocs, before[i].numallocs);
    EXPECT_GE(now.memalloced, before[i].memalloced);
    EXPECT_GE(now.numfrees, before[i].numfrees);
    EXPECT_GE(now.memfreed, before[i].memfreed);
    EXPECT_EQ(now.size_mask & before[i].size_mask, before[i].size_mask);
    before[i] = now;
  }
  for (const ZoneStats& zone : kernel.zones()) {
    EXPECT_LE(zone.keg_free_items, zone.keg_pages / zone.ppera * zone.ipers) << zone.name;
  }
  EXPECT_LE(kernel.free_pages(), kernel.total_pages());
  EXPECT_FALSE(report::print_vmstat_m(report::take_snapshot(kernel), 2).empty());
}

struct Flavour {
  bool invariants, traced;
  int domains;  // several: what another thread frees is of another NUMA domain
};

void stress(std::uint64_t seed, const Flavour& flavour) {
  KernelConfig config;
  config.cpus = kThreads + 1;
  config.mem = 1ull << 30;
  config.mode = RunMode::parallel;
  config.real_clock = true;
  config.invariants = flavour.invariants;
  config.domains = flavour.domains;
  Kernel kernel(config);
  kernel.cpus().bind(kThreads);
  const std::vector<malloc_type*> types{&kernel.define_type("M_ONE", "one"),
                                        &kernel.define_type("M_TWO", "two")};
  dtrace::Framework framework(kernel.cpus(), kernel.addresses());
  std::unique_ptr<ProbeLog> log;
  if (flavour.traced) {
    load_dtmalloc(framework, kernel);
    framework.open();
    log = std::make_unique<ProbeLog>(framework);
  }
  Shelf shelf;
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    workers.push_back(std::make_unique<Worker>(kernel, types, shelf, seed * 100 + i));
  }
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      kernel.cpus().bind(i);
      workers[static_cast<std::size_t>(i)]->run();
      kernel.cpus().unbind();
      running.fetch_sub(1);
    });
  }
  std::vector<TypeStats> before(kTypes);
  int snapshots = 0;
  do {
    check_snapshot(kernel, types, before);
    ++snapshots;
    std::this_thread::yield();
  } while (running.load() != 0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(snapshots, 0);

  // What is left on the shelf is freed here.
  for (Block block = shelf.take(0); block.address != nullptr; block = shelf.take(0)) {
    workers[0]->release(block);
  }
  std::array<reference::FlatStats, kTypes> total;
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->books().wrong_contents, 0);
    for (std::size_t i = 0; i < kTypes; ++i) {
      const reference::FlatStats& part = worker->books().types[i];
      total[i].memalloced += part.memalloced;
      total[i].memfreed += part.memfreed;
      total[i].numallocs += part.numallocs;
      total[i].numfrees += part.numfrees;
      total[i].mask |= part.mask;
    }
  }
  std::uint64_t allocs = 0, frees = 0;
  for (std::size_t i = 0; i < kTypes; ++i) {
    const TypeStats got = kernel.type_stats(*types[i]);
    EXPECT_EQ(got.memalloced, total[i].memalloced);
    EXPECT_EQ(got.memfreed, total[i].memfreed);
    EXPECT_EQ(got.numallocs, total[i].numallocs);
    EXPECT_EQ(got.numfrees, total[i].numfrees);
    EXPECT_EQ(got.size_mask, total[i].mask);
    EXPECT_EQ(got.memalloced, got.memfreed);
    allocs += got.numallocs;
    frees += got.numfrees;
  }
  if (log != nullptr) {
    const std::vector<Firing> firings = log->take();
    const auto mallocs = static_cast<std::uint64_t>(
        std::count_if(firings.begin(), firings.end(),
                      [](const Firing& firing) { return firing.probe == Firing::malloc; }));
    EXPECT_EQ(mallocs, allocs);
    EXPECT_EQ(firings.size() - mallocs, frees);
    log.reset();
  }
  const FlatMalloc nothing;
  EXPECT_EQ(support::law_of_kegs(kernel, nothing), "");
  EXPECT_EQ(support::law_of_pages(kernel, nothing), "");
  EXPECT_EQ(support::law_of_structures(kernel), "");
  EXPECT_TRUE(kernel.leaks().empty());
  kernel.cpus().unbind();
}

class MallocStress : public ::testing::TestWithParam<Flavour> {};

// REQ: LAW-1 LAW-2 LAW-5
TEST_P(MallocStress, TotalsAreExact_WhenThreadsExchangeBlocksUnderSnapshots) {
  const std::uint64_t first = support::seeds(1).first;
  for (std::uint64_t seed = first; seed < first + 3; ++seed) {
    SCOPED_TRACE("DTM_SEED=" + std::to_string(seed));
    stress(seed, GetParam());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Flavours, MallocStress,
                         ::testing::Values(Flavour{false, false, 1}, Flavour{false, true, 1},
                                           Flavour{true, false, 1}, Flavour{true, true, 1},
                                           Flavour{false, true, 2}, Flavour{false, false, 4},
                                           Flavour{true, false, 4}),
                         [](const auto& info) {
                           return std::string(info.param.invariants ? "Invariants" : "Production") +
                                  (info.param.traced ? "Traced" : "Untraced") +
                                  std::to_string(info.param.domains);
                         });

}  // namespace
}  // namespace dtmalloc
