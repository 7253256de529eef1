// SPDX-License-Identifier: BSD-2-Clause
#include "smp/cpu_hold.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace dtmalloc {
namespace {

TEST(CpuHold, MovesWhereItLikesAndStaysThere) {
  CpuSet cpus({.count = 3, .may_grow = false});
  cpus.bind(1);
  {
    CpuHold hold(cpus);
    EXPECT_EQ(hold.count(), 3);
    EXPECT_EQ(curcpu->id, 1);
    hold.move_to(2);
    EXPECT_EQ(curcpu, &cpus.cpu(2));
    EXPECT_EQ(curcpu->thread, &cpus.current_thread());
    // What acts on a CPU still does, here and elsewhere.
    int on = 0;
    cpus.run_on_each_cpu([&](Cpu&) { ++on; });
    EXPECT_EQ(on, 3);
    cpus.move_to(0);
    hold.move_to(2);
    cpus.move_to(0);  // where the seat is
    EXPECT_EQ(curcpu->id, 0);
    hold.move_to(2);
  }
  EXPECT_EQ(curcpu->id, 2);
  cpus.unbind();
  // All are free again.
  std::thread([&] {
    for (int id = 0; id < 3; ++id) cpus.bind(id);
  }).join();
}

TEST(CpuHold, TheHeldCpusAreNobodyElses) {
  CpuSet cpus({.count = 2, .may_grow = false, .mode = RunMode::parallel});
  cpus.bind(0);
  std::atomic<bool> starts{false}, bound{false};
  std::thread other;
  {
    CpuHold hold(cpus);
    other = std::thread([&] {
      starts = true;
      cpus.bind(1);
      bound = true;
    });
    hold.move_to(1);
    while (!starts) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(bound);
    hold.move_to(0);
  }
  other.join();
  EXPECT_TRUE(bound);
}

}  // namespace
}  // namespace dtmalloc
