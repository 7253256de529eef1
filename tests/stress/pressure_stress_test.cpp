// SPDX-License-Identifier: BSD-2-Clause
// Real threads that wait for each other's memory: everybody gets on, and nothing is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

constexpr int kThreads = 3;

// REQ: UMA9-42. Two blocks of 375 pages fit, three do not.
TEST(PressureStress, SleepersAreWoken) {
  KernelConfig config = test::small_config(kThreads, 4 << 20);
  config.mode = RunMode::parallel;
  config.real_clock = true;
  Kernel kernel(config);
  kernel.cpus().set_console([](std::string_view) {});
  malloc_type& type = kernel.define_type("M_T", "T");
  std::atomic<int> out{0};
  std::vector<std::thread> threads;
  for (int cpu = 0; cpu < kThreads; ++cpu)
    threads.emplace_back([&, cpu] {
      kernel.cpus().bind(cpu);
      for (int i = 0; i < 300; ++i) {
        void* block = kernel.malloc(375 * 4096, &type, M_WAITOK);
        EXPECT_LE(out.fetch_add(1), 1);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        out.fetch_sub(1);
        kernel.free(block, &type);
      }
      kernel.cpus().unbind();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(check_vm(kernel.vm()), "");
  EXPECT_EQ(kernel.free_pages(), kernel.total_pages());
  EXPECT_EQ(kernel.type_stats(type).numallocs, 900u);
}

// REQ: UMA9-52. The same of a zone's limit.
TEST(PressureStress, LimitsArePassedOn) {
  KernelConfig config = test::small_config(kThreads);
  config.mode = RunMode::parallel;
  config.real_clock = true;
  Kernel kernel(config);
  kernel.cpus().set_console([](std::string_view) {});
  uma_zone* zone =
      uma_zcreate(kernel.vm(), "few", 64, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, 0);
  uma_zone_set_max(zone, 2);
  std::atomic<int> out{0};
  std::vector<std::thread> threads;
  for (int cpu = 0; cpu < kThreads; ++cpu)
    threads.emplace_back([&, cpu] {
      kernel.cpus().bind(cpu);
      for (int i = 0; i < 2000; ++i) {
        void* item = uma_zalloc(zone, kM_WAITOK);
        EXPECT_LE(out.fetch_add(1), 1);
        if (i % 64 == 0) std::this_thread::yield();
        out.fetch_sub(1);
        uma_zfree(zone, item);
      }
      kernel.cpus().unbind();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(uma_zone_get_cur(zone), 0);
  EXPECT_EQ(zone->item_count(), 0u);
  EXPECT_EQ(check_vm(kernel.vm()), "");
}

}  // namespace
}  // namespace dtmalloc
