// SPDX-License-Identifier: BSD-2-Clause
// Simulated threads under one baton.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <dtmalloc/smp/cpu.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace dtmalloc {
namespace {

SimThread named(const std::string& name) {
  SimThread thread;
  thread.execname = name;
  return thread;
}

// Three threads of 40 operations each; who did each, in order.
std::string schedule(std::uint64_t seed) {
  CpuSet cpus({.count = 2, .seed = seed});
  cpus.bind(0);
  std::string order;
  for (const char* name : {"a", "b", "c"})
    cpus.spawn(named(name), name[0] % 2, [&cpus, &order, name] {
      for (int i = 0; i < 40; ++i) {
        order += name;
        cpus.operation_done();
      }
    });
  cpus.join_all();
  return order;
}

// REQ: SMP-07
TEST(Scheduler, SeedDecidesTheSchedule) {
  EXPECT_EQ(schedule(7).size(), 120u);
  EXPECT_EQ(schedule(7), schedule(7));
  EXPECT_NE(schedule(7), schedule(8));
}

TEST(Scheduler, ThreadRunsOnItsCpuWithItsName) {
  CpuSet cpus({.count = 4});
  cpus.bind(1);
  SimThread& worker = cpus.spawn(named("worker"), 3, [&] {
    EXPECT_EQ(curcpu->id, 3);
    EXPECT_EQ(cpus.current_thread().execname, "worker");
    EXPECT_EQ(curcpu->thread, &cpus.current_thread());
    cpus.move_to(1);
    EXPECT_EQ(curcpu->id, 1);
    cpus.operation_done();
  });
  EXPECT_EQ(worker.tid, 100001);
  EXPECT_EQ(cpus.current_thread().tid, 100000);
  cpus.join_all();
  EXPECT_EQ(curcpu->id, 1);
  EXPECT_EQ(curcpu->thread, &cpus.thread0());
}

// REQ: SMP-08
TEST(Scheduler, BatonStays_InACriticalSection) {
  CpuSet cpus({.count = 2, .seed = 3});
  cpus.bind(0);
  bool inside = false;
  auto body = [&] {
    for (int i = 0; i < 100; ++i) {
      {
        const CriticalSection section;
        EXPECT_FALSE(inside);
        inside = true;
        for (int j = 0; j < 40; ++j) cpus.operation_done();
        inside = false;
      }
      cpus.operation_done();
    }
  };
  cpus.spawn(named("a"), 0, body);
  cpus.spawn(named("b"), 0, body);
  cpus.join_all();
}

// REQ: SMP-11
TEST(Scheduler, TimeJumpsToTheNextWakeUp) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  std::vector<std::string> order;
  for (const int delay : {300, 100, 200})
    cpus.spawn(named("sleeper"), 0, [&, delay] {
      cpus.sleep_until(static_cast<std::uint64_t>(delay));
      order.push_back(std::to_string(cpus.clock().now()));
    });
  cpus.join_all();
  EXPECT_EQ(order, (std::vector<std::string>{"100", "200", "300"}));
  cpus.sleep_until(1000);
  EXPECT_EQ(cpus.clock().now(), 1000u);
}

TEST(Scheduler, LongWaitIsInterrupted) {
  for (const RunMode mode : {RunMode::deterministic, RunMode::parallel}) {
    for (const bool real : {false, true}) {
      CpuSet cpus({.count = 1, .real_clock = real, .mode = mode});
      cpus.bind(0);
      std::atomic<int> ran{0};
      cpus.clock().schedule(cpus.clock().now() + 100000, 100000, [&] { ++ran; });
      cpus.set_interrupt_check([&] { return ran >= 3; });
      EXPECT_FALSE(cpus.sleep_until(5'000'000'000'000'000));
      EXPECT_GE(ran.load(), 3);
      if (!real) {
        EXPECT_EQ(cpus.clock().now(), 300000u);
      }
      cpus.set_interrupt_check(nullptr);
      EXPECT_TRUE(cpus.sleep_until(cpus.clock().now() + 1000));
    }
  }
}

// Voluntary context switches of this process so far.
long switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

// REQ: SMP-22
TEST(Scheduler, AnIdleMachineSleepsUntilItIsWoken) {
  for (const RunMode mode : {RunMode::deterministic, RunMode::parallel}) {
    CpuSet cpus({.count = 2, .real_clock = true, .mode = mode});
    cpus.bind(0);
    std::atomic<bool> stop{false};
    cpus.set_interrupt_check([&] { return stop.load(); });
    const auto hour = [&] { return cpus.clock().now() + 3600'000'000'000; };
    const auto after = [](const std::function<void()>& body) {
      return std::thread([body] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        body();
      });
    };
    // A signal's handler.
    std::thread signal = after([&] {
      stop = true;
      Clock::wake();
    });
    const long before = switches();
    EXPECT_FALSE(cpus.sleep_until(hour()));
    EXPECT_LT(switches() - before, 15);
    signal.join();
    // Another thread makes something due, at once and by an alarm.
    stop = false;
    std::thread other = after([&] { cpus.clock().schedule(0, 0, [&] { stop = true; }); });
    EXPECT_FALSE(cpus.sleep_until(hour()));
    other.join();
    stop = false;
    Alarm alarm;
    cpus.clock().schedule(alarm, [&] { stop = true; });
    other = after([&] { cpus.clock().arm(alarm, 0); });
    EXPECT_FALSE(cpus.sleep_until(hour()));
    other.join();
    // Idle passes do not wake it; once there is something to do they do.
    stop = false;
    Watch watch;
    watch.idle = true;
    watch.skipped = [](std::uint64_t, std::uint64_t) {};
    const CalloutId passes = cpus.clock().schedule(
        cpus.clock().now(), 1000000, [&] { stop = true; }, watch);
    other = after([&] { cpus.clock().rouse(watch); });
    const long idle = switches();
    EXPECT_FALSE(cpus.sleep_until(hour()));
    EXPECT_LT(switches() - idle, 15);
    other.join();
    cpus.clock().cancel(passes);
    cpus.set_interrupt_check(nullptr);
  }
}

TEST(Scheduler, WaitBeyondTheEndOfTimeStopsThere) {
  for (const RunMode mode : {RunMode::deterministic, RunMode::parallel}) {
    CpuSet cpus({.count = 1, .mode = mode});
    cpus.bind(0);
    EXPECT_FALSE(cpus.sleep_until(~std::uint64_t{0}));
    EXPECT_EQ(cpus.clock().now(), Clock::kEndOfTime);
  }
}

TEST(Scheduler, WakeupWakesTheSleepersOfItsChannel) {
  CpuSet cpus({.count = 2});
  cpus.bind(0);
  int channel = 0, other = 0, woken = 0;
  for (int i = 0; i < 2; ++i)
    cpus.spawn(named("sleeper"), 1, [&] {
      cpus.sleep_on(&channel, "test", "a wake-up");
      ++woken;
    });
  cpus.spawn(named("waker"), 0, [&] {
    cpus.sleep_until(50);
    cpus.wakeup(&other);
    cpus.sleep_until(60);
    EXPECT_EQ(woken, 0);
    cpus.wakeup(&channel);
  });
  cpus.join_all();
  EXPECT_EQ(woken, 2);
}

TEST(Scheduler, SleepIsCancelled_WhenItsReasonIsGone) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  int channel = 0;
  cpus.sleep_on(&channel, "test", "nothing", [] { return true; });
}

TEST(Scheduler, CalloutCanWakeTheLastThread) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  int channel = 0;
  cpus.clock().schedule(500, 0, [&] { cpus.wakeup(&channel); });
  cpus.sleep_on(&channel, "test", "a callout");
  EXPECT_EQ(cpus.clock().now(), 500u);
}

// REQ: SMP-09
TEST(Scheduler, SleepInACriticalSectionPanics) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  const CriticalSection section;
  EXPECT_THROW(cpus.sleep_until(10), KernelPanic);
}

TEST(Scheduler, DeadlockNamesEverySleeper) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  int channel = 0;
  SimThread thread = named("nginx");
  thread.tid = 100712;
  cpus.spawn(thread, 0, [&] { cpus.sleep_on(&channel, "malloc 16 M_A M_WAITOK", "free pages"); });
  cpus.spawn(named("sh"), 0,
             [&] { cpus.sleep_on(&channel, "malloc 64 M_B M_WAITOK", "free pages"); });
  try {
    cpus.join_all();
    FAIL() << "no panic";
  } catch (const KernelPanic& panic) {
    EXPECT_STREQ(panic.what(),
                 "deadlock: nginx (tid 100712): malloc 16 M_A M_WAITOK waits for free pages; "
                 "sh (tid 100001): malloc 64 M_B M_WAITOK waits for free pages");
  }
}

// A periodic callout, as a tick probe has one, does not hide a deadlock.
TEST(Scheduler, DeadlockIsFound_UnderAPeriodicCallout) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  int channel = 0;
  cpus.clock().schedule(10, 10, [] {});
  EXPECT_THROW(cpus.sleep_on(&channel, "test", "nobody"), KernelPanic);
}

// REQ: SMP-14. The last thread that could have woken the sleeper ends after it fell asleep.
TEST(Scheduler, DeadlockIsFound_WhenTheLastOtherThreadEnds) {
  CpuSet cpus({.count = 3, .mode = RunMode::parallel});
  cpus.bind(2);
  int channel = 0;
  std::atomic<bool> asleep{false};
  cpus.spawn(named("sleeper"), 0, [&] {
    cpus.sleep_on(&channel, "malloc", "free pages", [&] {
      asleep = true;
      return false;
    });
  });
  cpus.spawn(named("last"), 1, [&] {
    while (!asleep) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  });
  try {
    cpus.join_all();
    FAIL() << "no panic";
  } catch (const KernelPanic& panic) {
    EXPECT_STREQ(panic.what(), "deadlock: sleeper (tid 100001): malloc waits for free pages");
  }
}

TEST(Scheduler, CalloutWakesTheLastThread_InParallel) {
  for (const bool real : {false, true}) {
    CpuSet cpus({.count = 1, .real_clock = real, .mode = RunMode::parallel});
    cpus.bind(0);
    int channel = 0;
    cpus.clock().schedule(cpus.clock().now() + 500, 0, [&] { cpus.wakeup(&channel); });
    cpus.sleep_on(&channel, "test", "a callout");
    EXPECT_GE(cpus.clock().now(), 500u);
  }
}

// REQ: SMP-15. All of the group sleep or have ended when a foreign thread wakes one of them.
TEST(Scheduler, BatonIsNotLost_WhenAForeignThreadWakes) {
  for (const bool panic : {false, true}) {
    CpuSet cpus({.count = 3});
    cpus.bind(0);
    int channel = 0;
    bool woken = false;
    std::atomic<bool> go{false}, done{false};
    std::atomic<bool> bound{false};
    std::thread foreign([&] {
      cpus.bind(2);
      bound = true;
      while (!go) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      if (panic) {
        EXPECT_THROW(cpus.panic("foreign"), KernelPanic);
      } else {
        cpus.wakeup(&channel);
      }
      while (!done) std::this_thread::yield();
    });
    while (!bound) std::this_thread::yield();
    cpus.spawn(named("sleeper"), 0, [&] {
      cpus.sleep_on(&channel, "test", "a foreign thread");
      woken = true;
    });
    cpus.spawn(named("last"), 0, [&] {
      for (int i = 0; i < 200; ++i) cpus.operation_done();
      go = true;
    });
    if (panic) {
      EXPECT_THROW(cpus.join_all(), KernelPanic);
    } else {
      cpus.join_all();
    }
    EXPECT_EQ(woken, !panic);
    done = true;
    foreign.join();
  }
}

TEST(Scheduler, DeadlockIsFound_WhenTheLastForeignThreadEnds) {
  CpuSet cpus({.count = 2});
  cpus.bind(0);
  int channel = 0;
  std::atomic<bool> bound{false}, go{false};
  std::thread foreign([&] {
    cpus.bind(1);
    bound = true;
    while (!go) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  });
  while (!bound) std::this_thread::yield();
  cpus.spawn(named("sleeper"), 0, [&] {
    go = true;
    cpus.sleep_on(&channel, "test", "nobody");
  });
  EXPECT_THROW(cpus.join_all(), KernelPanic);
  foreign.join();
}

// REQ: SMP-12
TEST(Scheduler, PanicEndsTheOtherThreads) {
  CpuSet cpus({.count = 2});
  cpus.bind(0);
  int channel = 0;
  bool returned = false;
  cpus.spawn(named("sleeper"), 1, [&] {
    cpus.sleep_on(&channel, "test", "nobody");
    returned = true;
  });
  SimThread thread = named("bad");
  thread.call_sites = {"outer", "inner+0x10"};
  cpus.spawn(thread, 0, [&] {
    cpus.sleep_until(10);
    try {
      cpus.panic("first");
    } catch (const KernelPanic& panic) {
      EXPECT_EQ(panic.backtrace(), (std::vector<std::string>{"inner+0x10", "outer"}));
      throw;
    }
  });
  try {
    cpus.join_all();
    FAIL() << "no panic";
  } catch (const KernelPanic& panic) {
    EXPECT_STREQ(panic.what(), "first");
  }
  EXPECT_FALSE(returned);
  EXPECT_TRUE(cpus.panicked());
  EXPECT_EQ(cpus.panic_message(), "first");
  EXPECT_THROW(cpus.panic("second"), KernelPanic);
  EXPECT_EQ(cpus.panic_message(), "first");
}

// The main thread sleeps until a time, and the clock is driven by the thread that ends.
// REQ: SMP-20
TEST(Scheduler, CalloutPanics_WhileAThreadEnds) {
  CpuSet cpus({.count = 2});
  cpus.bind(0);
  cpus.clock().schedule(1000, 0, [&] { cpus.panic("found by a callout"); });
  cpus.clock().schedule(2000, 500, [&] { ADD_FAILURE() << "a callout after the panic"; });
  cpus.spawn(named("t"), 1, [] {});
  try {
    cpus.sleep_until(5000);
    FAIL() << "the sleeper goes on";
  } catch (const KernelPanic& panic) {
    EXPECT_STREQ(panic.what(), "found by a callout");
  }
  EXPECT_THROW(cpus.join_all(), KernelPanic);
  EXPECT_EQ(cpus.panic_message(), "found by a callout");
}

// REQ: SMP-20
TEST(Scheduler, CalloutThrows_WhileAThreadEnds) {
  CpuSet cpus({.count = 2});
  cpus.bind(0);
  cpus.clock().schedule(1000, 0, [] { throw std::runtime_error("thrown by a callout"); });
  cpus.spawn(named("t"), 1, [] {});
  EXPECT_TRUE(cpus.sleep_until(5000));
  EXPECT_THROW(cpus.join_all(), std::runtime_error);
  EXPECT_FALSE(cpus.panicked());
}

TEST(Scheduler, OtherExceptionsReachJoinAll) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  cpus.spawn(named("a"), 0, [] { throw std::runtime_error("a bug in a test"); });
  EXPECT_THROW(cpus.join_all(), std::runtime_error);
}

TEST(Scheduler, ThreadsEnd_WhenTheMachineGoesAway) {
  bool unwound = false, started = false;
  int channel = 0;
  {
    CpuSet cpus({.count = 1});
    cpus.bind(0);
    cpus.spawn(named("a"), 0, [&] {
      started = true;
      struct Mark {
        bool& flag;
        ~Mark() { flag = true; }
      } mark{unwound};
      cpus.sleep_on(&channel, "test", "nobody");
    });
    while (!started) {
      cpus.sleep_until(cpus.clock().now() + 1);
      if (started) break;
    }
  }
  EXPECT_TRUE(unwound);
}

TEST(Scheduler, ParallelThreadsAreJoined) {
  CpuSet cpus({.count = 3, .mode = RunMode::parallel});
  cpus.bind(0);
  std::atomic<int> sum{0};
  for (int cpu = 0; cpu < 3; ++cpu)
    cpus.spawn(named("p"), cpu, [&sum, cpu] {
      EXPECT_EQ(curcpu->id, cpu);
      sum += cpu + 1;
    });
  cpus.join_all();
  EXPECT_EQ(sum.load(), 6);
  EXPECT_EQ(curcpu->id, 0);
}

}  // namespace
}  // namespace dtmalloc
