// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <dtmalloc/smp/cpu.hpp>
#include <string>
#include <thread>
#include <vector>

namespace dtmalloc {
namespace {

TEST(CpuSet, BindAndUnbind) {
  CpuSet cpus({.count = 3});
  EXPECT_EQ(curcpu->machine, nullptr);
  cpus.bind(2);
  EXPECT_EQ(curcpu, &cpus.cpu(2));
  EXPECT_EQ(cpus.bind_any().id, 2);
  cpus.unbind();
  EXPECT_EQ(curcpu->machine, nullptr);
  EXPECT_NE(curcpu->guard.load() & kGuardUnbound, 0u);
  EXPECT_EQ(cpus.bind_any().id, 2);  // where it was
}

TEST(CpuSet, GrowsOnDemand) {
  CpuSet cpus({.count = 1});
  cpus.bind(5);
  EXPECT_EQ(cpus.count(), 6);
  std::thread([&] { EXPECT_EQ(cpus.bind_any().id, 0); }).join();
}

TEST(CpuSet, ThreadThatEndsGivesItsCpuBack) {
  CpuSet cpus({.count = 1, .may_grow = false});
  for (int i = 0; i < 3; ++i) std::thread([&] { EXPECT_EQ(cpus.bind_any().id, 0); }).join();
}

TEST(CpuSet, BindWaitsForTheOwner) {
  CpuSet cpus({.count = 1, .may_grow = false});
  cpus.bind(0);
  std::atomic<bool> bound{false};
  std::thread other([&] {
    cpus.bind(0);
    bound = true;
  });
  EXPECT_FALSE(bound);
  cpus.unbind();
  other.join();
  EXPECT_TRUE(bound);
}

TEST(CpuSet, OneMachineAtATime) {
  CpuSet first({.count = 2});
  first.bind(1);
  {
    CpuSet second({.count = 1});
    second.bind_any();
    EXPECT_EQ(curcpu->machine, &second);
    EXPECT_EQ(first.bind_any().id, 1);
    second.bind_any();
  }
  EXPECT_EQ(curcpu->machine, nullptr);  // the machine died under the thread
  EXPECT_EQ(first.bind_any().id, 1);
}

TEST(CpuSet, CriticalSectionsNest) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  critical_enter();
  critical_enter();
  EXPECT_EQ(curcpu->critnest.load(), 2u);
  critical_exit();
  EXPECT_EQ(curcpu->critnest.load(), 1u);
  critical_exit();
  EXPECT_EQ(curcpu->critnest.load(), 0u);
}

TEST(CpuSet, RunOnCpu) {
  CpuSet cpus({.count = 3});
  cpus.bind(0);
  std::string ran;
  cpus.run_on_each_cpu([&](Cpu& cpu) { ran += std::to_string(cpu.id); });
  EXPECT_EQ(ran, "012");
  cpus.run_on_cpu(cpus.cpu(1), [&] {
    cpus.run_on_cpu(cpus.cpu(2), [&] { ran += "!"; });  // may nest
  });
  EXPECT_EQ(ran, "012!");
  EXPECT_THROW(cpus.run_on_cpu(cpus.cpu(1), [] { throw 1; }), int);
  cpus.run_on_cpu(cpus.cpu(1), [&] { ran += "?"; });
  EXPECT_EQ(ran, "012!?");
  std::thread([&] { cpus.bind(1); }).join();  // and it can be owned again
  const CriticalSection section;
  EXPECT_THROW(cpus.run_on_cpu(cpus.cpu(1), [] {}), KernelPanic);
}

TEST(CpuSet, PanicSetsItsBitEverywhere) {
  CpuSet cpus({.count = 2});
  cpus.bind(0);
  cpus.current_thread().call_sites = {"a", "b"};
  EXPECT_THROW(cpus.panic("text"), KernelPanic);
  EXPECT_NE(cpus.cpu(0).guard.load() & kGuardPanic, 0u);
  EXPECT_NE(cpus.cpu(1).guard.load() & kGuardPanic, 0u);
  EXPECT_THROW(cpus.check_panic(), KernelPanic);
  cpus.bind(4);
  EXPECT_NE(curcpu->guard.load() & kGuardPanic, 0u);  // CPUs that join later too
}

// REQ: SMP-13. What a panic leaves behind can still be read: run_on_cpu() waits for no section that
// it left.
TEST(CpuSet, SectionLeftByAPanicStopsNobody) {
  CpuSet cpus({.count = 3});
  cpus.bind(0);
  std::atomic<bool> panicked{false}, done{false};
  std::thread other([&] {
    cpus.bind(1);
    critical_enter();
    EXPECT_THROW(cpus.panic("in a section"), KernelPanic);
    panicked = true;
    while (!done) std::this_thread::yield();
  });
  while (!panicked) std::this_thread::yield();
  std::string ran;
  cpus.run_on_each_cpu([&](Cpu& cpu) { ran += std::to_string(cpu.id); });
  EXPECT_EQ(ran, "012");
  critical_enter();
  EXPECT_THROW(cpus.check_panic(), KernelPanic);
  cpus.run_on_each_cpu([&](Cpu& cpu) { ran += std::to_string(cpu.id); });
  EXPECT_EQ(ran, "012012");
  cpus.bind(2);  // and the CPU may be left
  EXPECT_EQ(cpus.cpu(0).critbase, 0u);
  EXPECT_EQ(curcpu->critbase, 0u);
  done = true;
  other.join();
}

TEST(CpuSet, NextOwnerFindsNoSection) {
  CpuSet cpus({.count = 1, .may_grow = false});
  std::thread([&] {
    cpus.bind(0);
    critical_enter();
  }).join();
  cpus.bind(0);
  EXPECT_EQ(curcpu->critbase, 0u);
  EXPECT_EQ(curcpu->critnest.load(), 0u);
}

TEST(CpuSet, CpuIsNotLeftInsideACriticalSection) {
  for (int way = 0; way < 4; ++way) {
    CpuSet first({.count = 2});
    CpuSet second({.count = 1});
    first.bind(0);
    const CriticalSection section;
    first.bind(0);  // nothing is left
    first.bind_any();
    EXPECT_THROW(
        {
          if (way == 0) first.bind(1);
          if (way == 1) first.unbind();
          if (way == 2) second.bind(0);
          if (way == 3) second.bind_any();
        },
        KernelPanic);
    EXPECT_TRUE(first.panicked());
    EXPECT_FALSE(second.panicked());
  }
}

TEST(CpuSet, UnwindingThreadMayStillCall) {
  CpuSet cpus({.count = 1});
  cpus.bind(0);
  struct Quiet {
    CpuSet& cpus;
    ~Quiet() { cpus.check_panic(); }
  };
  EXPECT_THROW(
      {
        const Quiet quiet{cpus};
        cpus.panic("text");
      },
      KernelPanic);
}

TEST(CpuSet, ConsoleGoesToItsSink) {
  CpuSet cpus({.count = 1});
  std::string text;
  cpus.set_console([&](std::string_view part) { text += part; });
  cpus.console("a\n");
  EXPECT_EQ(text, "a\n");
}

}  // namespace
}  // namespace dtmalloc
