// SPDX-License-Identifier: BSD-2-Clause
// Real threads take and give items while others reclaim, destroy zones and read the books. The
// laws hold at the end; also runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "support/kernel_fixture.hpp"
#include "workload/random.hpp"

namespace dtmalloc {
namespace {

using workload::Random;

constexpr int kThreads = 3;
constexpr int kOperations = 20000;

struct Shared {
  Kernel& kernel;
  uma_zone* zones[3];
  std::atomic<bool> done{false};
};

void take_and_give(Shared& shared, int cpu) {
  shared.kernel.cpus().bind(cpu);
  Random random(static_cast<std::uint64_t>(cpu) + 1);
  std::vector<std::pair<uma_zone*, unsigned char*>> live;
  for (int i = 0; i < kOperations; ++i) {
    if (live.empty() || random.next() % 2 == 0) {
      uma_zone* zone = shared.zones[random.next() % 3];
      auto* item = static_cast<unsigned char*>(uma_zalloc(zone, kM_NOWAIT));
      if (item == nullptr) continue;
      std::memset(item, cpu + 1, 64);
      live.emplace_back(zone, item);
    } else {
      std::swap(live[random.next() % live.size()], live.back());
      const auto [zone, item] = live.back();
      for (int byte = 0; byte < 64; ++byte) ASSERT_EQ(item[byte], cpu + 1);
      uma_zfree(zone, item);
      live.pop_back();
    }
  }
  for (const auto& [zone, item] : live) uma_zfree(zone, item);
  shared.kernel.cpus().unbind();
}

void reclaim(Shared& shared, int cpu) {
  shared.kernel.cpus().bind(cpu);
  Random random(99);
  while (!shared.done.load()) {
    const int request = 1 + static_cast<int>(random.next() % 3);
    if (random.next() % 2 == 0)
      uma_reclaim(shared.kernel.vm(), request);
    else
      uma_zone_reclaim(shared.zones[random.next() % 3], request);
    uma_timeout_pass(shared.kernel.vm());
  }
  shared.kernel.cpus().unbind();
}

void make_and_destroy(Shared& shared, int cpu) {
  shared.kernel.cpus().bind(cpu);
  std::atomic<int> calls{0};
  while (!shared.done.load()) {
    uma_zone* zone = uma_zcreate(shared.kernel.vm(), "brief", 200, nullptr, nullptr, nullptr,
                                 nullptr, UMA_ALIGN_PTR, 0);
    const LowmemHandler handler(shared.kernel.vm(), [&](int) { ++calls; });
    std::vector<void*> items;
    for (int i = 0; i < 100; ++i) items.push_back(uma_zalloc(zone, kM_WAITOK));
    uma_reclaim_wakeup(shared.kernel.vm());
    shared.kernel.cpus().clock().run_due();
    for (void* item : items) uma_zfree(zone, item);
    uma_zdestroy(zone);
    shared.kernel.zones();
  }
  shared.kernel.cpus().unbind();
}

// REQ: UMA9-70
TEST(UmaStress, ZonesAreReclaimedWhileTheyAreUsed) {
  for (const bool invariants : {false, true}) {
    KernelConfig config = test::small_config(kThreads + 2);
    config.mode = RunMode::parallel;
    config.real_clock = true;
    config.invariants = invariants;
    Kernel kernel(config);
    kernel.cpus().set_console([](std::string_view) {});
    Shared shared{kernel, {}, {}};
    constexpr std::size_t kSizes[] = {64, 300, 4096};
    for (int i = 0; i < 3; ++i)
      shared.zones[i] = uma_zcreate(kernel.vm(), "shared", kSizes[i], nullptr, nullptr, nullptr,
                                    nullptr, UMA_ALIGN_PTR, 0);
    uma_zone_set_max(shared.zones[1], 500);
    std::vector<std::thread> threads;
    for (int cpu = 0; cpu < kThreads; ++cpu)
      threads.emplace_back([&shared, cpu] { take_and_give(shared, cpu); });
    std::thread reclaimer([&shared] { reclaim(shared, kThreads); });
    std::thread maker([&shared] { make_and_destroy(shared, kThreads + 1); });
    for (std::thread& thread : threads) thread.join();
    shared.done.store(true);
    reclaimer.join();
    maker.join();
    EXPECT_EQ(check_vm(kernel.vm()), "");
    uma_reclaim(kernel.vm(), UMA_RECLAIM_DRAIN_CPU);
    EXPECT_EQ(check_vm(kernel.vm()), "");
    for (uma_zone* zone : shared.zones) {
      EXPECT_EQ(uma_zone_get_cur(zone), 0);
      EXPECT_EQ(uma_zone_memory(zone), 0u);
    }
    EXPECT_EQ(shared.zones[1]->item_count(), 0u);
  }
}

}  // namespace
}  // namespace dtmalloc
