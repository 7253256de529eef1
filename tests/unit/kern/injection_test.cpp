// SPDX-License-Identifier: BSD-2-Clause
// Planned failures.
#include <gtest/gtest.h>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;

struct InjectionTest : ::testing::Test {
  Machine m;
  InjectionTest() { m.kernel.cpus().bind(0); }
  ~InjectionTest() override { m.kernel.cpus().unbind(); }
};

TEST_F(InjectionTest, TheNthRequestFails_WithoutATrace) {
  // REQ: LEDGER-17
  m.kernel.free(m.kernel.malloc(10, &m.type, M_WAITOK), &m.type);
  m.trace(m.type);
  const TypeStats before = m.stats();
  const ZoneStats zone = m.zone("malloc-16");
  m.kernel.plan_failure({.nth = 2});
  void* a = m.kernel.malloc(10, &m.type, M_NOWAIT);
  void* w = m.kernel.malloc(10, &m.type, M_WAITOK);  // may wait: not counted
  EXPECT_EQ(m.kernel.malloc(10, &m.type, M_NOWAIT), nullptr);
  void* b = m.kernel.malloc(10, &m.type, M_NOWAIT);
  EXPECT_EQ(m.kernel.end_failure().matched, 3u);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(b, nullptr);
  EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}, {false, 16, 0}, {false, 16, 0}}));
  EXPECT_EQ(m.stats().numallocs, before.numallocs + 3);
  EXPECT_EQ(m.zone("malloc-16").fail, zone.fail);
  EXPECT_EQ(m.zone("malloc-16").requests, zone.requests + 3);
  EXPECT_NE(w, nullptr);
}

TEST_F(InjectionTest, AfterThePlanTheHotPathRunsAgain) {
  // REQ: LEDGER-17
  m.kernel.plan_failure({.nth = 1});
  EXPECT_NE(curcpu->guard.load() & kGuardDebug, 0u);
  m.kernel.end_failure();
  EXPECT_EQ(curcpu->guard.load() & kGuardDebug, 0u);
  EXPECT_NE(m.kernel.malloc(10, &m.type, M_NOWAIT), nullptr);
}

TEST_F(InjectionTest, EveryMemberOfTheFamilyCounts) {
  // REQ: LEDGER-17
  Kernel& k = m.kernel;
  void* held = k.malloc(100, &m.type, M_WAITOK);
  const std::vector<std::function<void*()>> calls{
      [&] { return k.malloc(1, &m.type, M_NOWAIT); },
      [&] { return k.malloc(70000, &m.type, M_NOWAIT | M_ZERO); },
      [&] { return k.mallocarray(2, 8, &m.type, M_NOWAIT); },
      [&] { return k.malloc_aligned(8, 64, &m.type, M_NOWAIT); },
      [&] { return k.malloc_exec(8, &m.type, M_NOWAIT); },
      [&] { return k.contigmalloc(8, &m.type, M_NOWAIT); },
      [&] { return k.realloc(held, 1000, &m.type, M_NOWAIT); }};
  for (const auto& call : calls) {
    k.plan_failure({.nth = 1});
    EXPECT_EQ(call(), nullptr);
    EXPECT_EQ(k.end_failure().matched, 1u);
  }
  EXPECT_EQ(m.stats().numallocs, 1u);
}

TEST_F(InjectionTest, PicksByTypeAndByCallSite) {
  // REQ: LEDGER-17
  malloc_type& other = m.kernel.define_type("M_U", "u name");
  const auto fails = [&](malloc_type& type) {
    return m.kernel.malloc(1, &type, M_NOWAIT) == nullptr;
  };
  for (const char* name : {"M_U", "u name"}) {
    m.kernel.plan_failure({.nth = 1, .type = name});
    EXPECT_FALSE(fails(m.type));
    EXPECT_TRUE(fails(other));
    EXPECT_EQ(m.kernel.end_failure().matched, 1u);
  }
  m.kernel.plan_failure({.nth = 1, .site = "foo_attach"});
  EXPECT_FALSE(fails(m.type));
  m.kernel.cpus().current_thread().call_sites = {"foo_attach", "foo_alloc"};
  EXPECT_TRUE(fails(m.type));
  m.kernel.cpus().current_thread().call_sites.clear();
  const FailureOutcome outcome = m.kernel.end_failure();
  EXPECT_EQ(outcome.matched, 1u);
  EXPECT_TRUE(outcome.failed);
  EXPECT_EQ(outcome.type, "T");
  EXPECT_EQ(outcome.stack, (std::vector<std::string>{"foo_alloc", "foo_attach"}));
}

}  // namespace
}  // namespace dtmalloc
