// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <dtmalloc/smp/cpu.hpp>
#include <string>
#include <thread>

namespace dtmalloc {
namespace {

// REQ: SMP-10
TEST(Clock, CalloutsRunInOrder_EachAtItsTime) {
  Clock clock(false);
  std::string order;
  auto note = [&](char name) {
    return [&order, &clock, name] { order += name + std::to_string(clock.now()) + " "; };
  };
  clock.schedule(30, 0, note('c'));
  clock.schedule(10, 0, note('a'));
  clock.schedule(10, 10, note('b'));
  EXPECT_EQ(clock.next_due(), 10u);
  EXPECT_EQ(clock.next_one_shot(), 10u);
  clock.advance(35);
  EXPECT_EQ(order, "a10 b10 b20 c30 b30 ");
  EXPECT_EQ(clock.now(), 35u);
  EXPECT_EQ(clock.next_due(), 40u);
  EXPECT_EQ(clock.next_one_shot(), ~std::uint64_t{0});
}

TEST(Clock, CancelledCalloutDoesNotRun) {
  Clock clock(false);
  bool ran = false;
  const CalloutId id = clock.schedule(10, 0, [&] { ran = true; });
  clock.cancel(id);
  clock.advance(100);
  EXPECT_FALSE(ran);
  EXPECT_EQ(clock.next_due(), ~std::uint64_t{0});
}

TEST(Clock, CalloutMayScheduleAndCancel) {
  Clock clock(false);
  int ran = 0, followed = 0;
  CalloutId periodic = 0;
  periodic = clock.schedule(5, 5, [&] {
    if (++ran == 3) clock.cancel(periodic);
    clock.schedule(clock.now() + 1, 0, [&] { ++followed; });
  });
  clock.advance(100);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(followed, 3);
}

TEST(Clock, CalloutsWaitForTheEndOfACriticalSection) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  bool ran = false;
  cpus.clock().schedule(10, 0, [&] { ran = true; });
  {
    const CriticalSection outer;
    const CriticalSection inner;
    cpus.clock().advance(20);
    EXPECT_FALSE(ran);
  }
  EXPECT_TRUE(ran);
}

TEST(Clock, VirtualWallClockBeginsAtAFixedDay) {
  Clock clock(false);
  clock.advance(5);
  EXPECT_EQ(clock.wall(), 1793059200000000005);  // 2026-10-27 00:00:00 UTC + 5 ns
}

TEST(Clock, RealClockMoves) {
  Clock clock(true);
  const std::uint64_t before = clock.now();
  bool ran = false;
  clock.schedule(before + 1, 0, [&] { ran = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  clock.run_due();
  EXPECT_TRUE(ran);
  EXPECT_GT(clock.now(), before);
}

}  // namespace
}  // namespace dtmalloc
