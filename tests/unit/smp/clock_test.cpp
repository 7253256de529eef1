// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

TEST(Clock, AnAlarmStandsStillUntilItIsArmed) {
  Clock clock(false);
  Alarm alarm;
  std::string order;
  clock.schedule(alarm, [&] { order += std::to_string(clock.now()) + " "; });
  EXPECT_EQ(clock.next_due(), ~std::uint64_t{0});
  clock.advance(100);
  clock.arm(alarm, 150);
  clock.arm(alarm, 120);
  clock.arm(alarm, 130);
  EXPECT_TRUE(alarm.armed());
  EXPECT_EQ(clock.next_due(), 120u);
  EXPECT_EQ(clock.next_one_shot(), ~std::uint64_t{0});
  clock.advance(100);
  EXPECT_EQ(order, "120 ");
  EXPECT_FALSE(alarm.armed());
  clock.arm(alarm, 100);  // that has passed
  clock.run_due();
  EXPECT_EQ(order, "120 200 ");
}

// REQ: SMP-21
TEST(Clock, IdleCallsAreLeftOut_AndTold) {
  Clock clock(false);
  std::string order;
  Watch watch;
  watch.skipped = [&](std::uint64_t first, std::uint64_t last) {
    order += std::to_string(first) + "-" + std::to_string(last) + " ";
  };
  const auto note = [&](const std::string& name) {
    order += name + std::to_string(clock.now()) + " ";
  };
  clock.schedule(25, 0, [&] { note("early"); });
  clock.schedule(30, 0, [&] { note("before"); });
  clock.schedule(
      10, 10, [&] { note("call"); }, watch);
  clock.schedule(60, 0, [&] { note("after"); });
  watch.idle = true;
  EXPECT_EQ(clock.next_due(), 10u);
  EXPECT_EQ(clock.next_event(), 25u);
  clock.advance(65);
  EXPECT_EQ(order, "10-20 early25 before30 30-60 after60 ");
  clock.rouse(watch);
  EXPECT_EQ(clock.next_event(), 70u);
  clock.advance(5);
  EXPECT_EQ(order, "10-20 early25 before30 30-60 after60 call70 ");
  watch.idle = true;
  order.clear();
  EXPECT_EQ(clock.next_event(), ~std::uint64_t{0});
  EXPECT_TRUE(clock.advance(100ull * 365 * 86400 * 1000000000));  // at once
  EXPECT_EQ(order, "80-3153600000000000070 ");
}

// REQ: SMP-21
TEST(Clock, IdleCallsThatAreLateAreLate) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  Clock& clock = cpus.clock();
  std::string order;
  Watch watch;
  watch.idle = true;
  watch.skipped = [&](std::uint64_t first, std::uint64_t last) {
    order += std::to_string(first) + "-" + std::to_string(last) + " ";
  };
  clock.schedule(
      10, 10, [&] { order += "call "; }, watch);
  {
    const CriticalSection section;
    clock.advance(35);
  }
  clock.advance(30);
  EXPECT_EQ(order, "35-35 40-60 ");
}

// Two of them do not keep each other from leaping.
TEST(Clock, IdleCalloutsLeapOverEachOther) {
  Clock clock(false);
  int told = 0;
  Watch watches[2];
  for (Watch& watch : watches) {
    watch.idle = true;
    watch.skipped = [&](std::uint64_t, std::uint64_t) { ++told; };
  }
  clock.schedule(
      10, 10, [] {}, watches[0]);
  clock.schedule(
      15, 10, [] {}, watches[1]);
  clock.advance(1'000'000'000'000);
  EXPECT_EQ(told, 2);
}

// REQ: SMP-23
TEST(Clock, AWatchIsToldOfItsDeadline_InWhateverSection) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  Clock& clock = cpus.clock();
  int told = 0, calls = 0;
  Watch watch;
  watch.overdue = [&] { ++told; };
  watch.deadline = 45;
  clock.schedule(
      10, 10,
      [&] {
        ++calls;
        watch.deadline = clock.now() + 45;
      },
      watch);
  clock.advance(100);
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(told, 0);
  for (int round = 1; round <= 2; ++round) {
    const CriticalSection section;
    const std::uint64_t due = watch.deadline;
    while (clock.now() < due) clock.advance(1);
    EXPECT_EQ(told, round - 1);
    clock.advance(1);
    EXPECT_EQ(told, round);
    clock.advance(100);
    EXPECT_EQ(told, round);
  }
}

TEST(Clock, SpinningRunsNothing) {
  Clock clock(false);
  bool ran = false;
  clock.schedule(10, 0, [&] { ran = true; });
  clock.spin(20);
  EXPECT_EQ(clock.now(), 20u);
  EXPECT_FALSE(ran);
  clock.run_due();
  EXPECT_TRUE(ran);
  Clock real(true);
  const std::uint64_t before = real.now();
  real.spin(1000000);
  EXPECT_GE(real.now(), before + 1000000);
}

TEST(Clock, SpinningBeyondADeadlineIsNoticed) {
  Clock clock(false);
  Watch watch;
  int told = 0;
  watch.overdue = [&] { ++told; };
  watch.deadline = 50;
  clock.schedule(
      10, 100, [] {}, watch);
  clock.advance(10);
  clock.spin(40);
  EXPECT_EQ(told, 0);
  clock.spin(1);
  EXPECT_EQ(told, 1);
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

// REQ: SMP-16
TEST(Clock, AdvanceStops_WhenTheCheckSaysSo) {
  Clock clock(false);
  int ran = 0;
  clock.schedule(10, 10, [&] { ++ran; });
  clock.set_interrupt_check([&] { return ran == 3; });
  EXPECT_FALSE(clock.advance(1'000'000'000'000));
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(clock.now(), 30u);
  EXPECT_TRUE(clock.interrupted());
  clock.set_interrupt_check(nullptr);
  EXPECT_FALSE(clock.interrupted());
  EXPECT_TRUE(clock.advance(20));
  EXPECT_EQ(ran, 5);
}

// REQ: SMP-17
TEST(Clock, VirtualTimeStopsAtItsEnd) {
  Clock clock(false);
  int ran = 0;
  clock.schedule(5, ~std::uint64_t{0} - 1, [&] { ++ran; });
  clock.schedule(Clock::kEndOfTime + 1, 0, [&] { ++ran; });
  EXPECT_TRUE(clock.advance(1000));
  EXPECT_TRUE(clock.can_advance(Clock::kEndOfTime - 1000));
  EXPECT_FALSE(clock.can_advance(Clock::kEndOfTime - 999));
  EXPECT_FALSE(clock.can_advance(~std::uint64_t{0}));
  EXPECT_EQ(clock.after(7), 1007u);
  EXPECT_EQ(clock.after(~std::uint64_t{0} - 7), Clock::kEndOfTime);
  clock.advance(~std::uint64_t{0});
  EXPECT_EQ(clock.now(), Clock::kEndOfTime);
  EXPECT_GT(clock.wall(), 0);
  EXPECT_EQ(ran, 1);
}

TEST(Clock, NeverGoesBack_WhenTwoThreadsAdvance) {
  Clock clock(false);
  std::atomic<bool> back{false};
  auto body = [&](std::uint64_t step) {
    std::uint64_t last = 0;
    for (int i = 0; i < 50000; ++i) {
      clock.advance(step);
      const std::uint64_t now = clock.now();
      if (now < last) back = true;
      last = now;
    }
  };
  std::thread other(body, 1000);
  body(1);
  other.join();
  EXPECT_FALSE(back.load());
}

// REQ: SMP-18. What the callout uses may go as soon as cancel() has returned.
TEST(Clock, CancelWaits_WhileTheCalloutRunsElsewhere) {
  for (const std::uint64_t interval : {0u, 10u}) {
    Clock clock(false);
    std::atomic<bool> begun{false}, cancelling{false}, ended{false};
    const CalloutId id = clock.schedule(10, interval, [&] {
      begun = true;
      while (!cancelling) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ended = true;
    });
    std::thread runner([&] { clock.advance(15); });
    while (!begun) std::this_thread::yield();
    clock.stop(id);
    EXPECT_FALSE(ended.load());
    cancelling = true;
    clock.cancel(id);
    EXPECT_TRUE(ended.load());
    runner.join();
  }
}

// REQ: SMP-18
TEST(Clock, CalloutRunsOnceAtATime) {
  Clock clock(false);
  std::atomic<int> inside{0}, most{0}, runs{0};
  clock.schedule(10, 10, [&] {
    if (inside.fetch_add(1) != 0) most = 1;
    std::this_thread::yield();
    ++runs;
    inside.fetch_sub(1);
  });
  auto body = [&] {
    for (int i = 0; i < 300; ++i) clock.advance(10);
  };
  std::thread other(body);
  body();
  other.join();
  clock.run_due();
  EXPECT_EQ(most.load(), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(runs.load()), clock.now() / 10);
}

TEST(Clock, CalloutThatAdvancesTheClockIsNotEnteredAgain) {
  Clock clock(false);
  int depth = 0, deepest = 0;
  clock.schedule(10, 10, [&] {
    deepest = std::max(deepest, ++depth);
    if (clock.now() < 50) clock.advance(20);
    --depth;
  });
  clock.advance(60);
  EXPECT_EQ(deepest, 1);
}

TEST(Clock, CalloutsWait_WhileAnExceptionUnwinds) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  bool ran = false;
  cpus.clock().schedule(10, 0, [&] { ran = true; });
  try {
    const CriticalSection section;
    cpus.clock().advance(20);
    throw 1;
  } catch (int) {
    EXPECT_FALSE(ran);
  }
  cpus.clock().run_due();
  EXPECT_TRUE(ran);
}

TEST(Clock, CalloutMayPanic_AtTheEndOfACriticalSection) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  cpus.clock().schedule(10, 0, [&] { cpus.panic("in a callout"); });
  EXPECT_THROW(
      {
        const CriticalSection section;
        cpus.clock().advance(20);
      },
      KernelPanic);
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
