// SPDX-License-Identifier: BSD-2-Clause
// Enablings with C++ callbacks.
#include <gtest/gtest.h>

#include <thread>

#include "fake_provider.hpp"

namespace dtmalloc::dtrace {
namespace {

struct Seen {
  std::vector<std::string>* order = nullptr;
  std::string name;
  std::vector<std::uintptr_t> arguments;
  ProbeId id = 0;
};

void note(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
          std::uintptr_t arg3, std::uintptr_t arg4) {
  auto& seen = *static_cast<Seen*>(firing.context);
  seen.id = firing.id;
  seen.arguments = {arg0, arg1, arg2, arg3, arg4};
  if (seen.order != nullptr) seen.order->push_back(seen.name);
}

class EnablingTest : public ::testing::Test {
 protected:
  EnablingTest() {
    EXPECT_EQ(framework.register_provider("fake", kFakeAttributes, 0, &provider, &provider.id), 0);
    for (const char* name : {"a", "b"}) {
      framework.probe_create(provider.id, "m", "f", name, 0, nullptr);
    }
    cpus.bind(0);
  }
  ~EnablingTest() override { cpus.unbind(); }
  void fire(ProbeId id) {
    const CriticalSection section;
    Framework::probe_fire(id, 1, 2, 3, 4, 5);
  }
  CpuSet cpus{SmpConfig{.count = 2}};
  AddressMap addresses;
  FakeProvider provider;
  Framework framework{cpus, addresses};
};

TEST_F(EnablingTest, CallsBackWithTheFiveArguments) {
  Seen seen;
  auto enabling = framework.enable({"fake", "", "", "b", 0}, note, &seen);
  ASSERT_TRUE(enabling);
  fire(1);
  EXPECT_EQ(seen.id, 0u);
  fire(2);
  EXPECT_EQ(seen.id, 2u);
  EXPECT_EQ(seen.arguments, (std::vector<std::uintptr_t>{1, 2, 3, 4, 5}));
  framework.disable(*enabling);
}

// REQ: DTRACE-07
TEST_F(EnablingTest, FirstEnablingEnablesAndLastDisables) {
  auto first = framework.enable({"fake", "", "", "a", 0}, note, nullptr);
  auto second = framework.enable({"fake", "", "", "", 0}, note, nullptr);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(framework.enabled_probes(), 2u);
  EXPECT_EQ(provider.log, (std::vector<std::string>{"enable 1", "enable 2"}));
  framework.disable(*first);
  EXPECT_EQ(provider.log.size(), 2u);
  framework.disable(*second);
  EXPECT_EQ(provider.log,
            (std::vector<std::string>{"enable 1", "enable 2", "disable 1", "disable 2"}));
  EXPECT_EQ(framework.enabled_probes(), 0u);
}

// REQ: DTRACE-08
TEST_F(EnablingTest, FiresInOrderOfCreation) {
  std::vector<std::string> order;
  Seen one{&order, "one", {}, 0};
  Seen two{&order, "two", {}, 0};
  Seen three{&order, "three", {}, 0};
  auto first = framework.enable({"", "", "", "a", 0}, note, &one);
  auto second = framework.enable({"", "", "", "a", 0}, note, &two);
  auto third = framework.enable({"", "", "", "a", 0}, note, &three);
  ASSERT_TRUE(first && second && third);
  fire(1);
  framework.disable(*second);
  fire(1);
  EXPECT_EQ(order, (std::vector<std::string>{"one", "two", "three", "one", "three"}));
}

TEST_F(EnablingTest, UnmatchedDescriptionIsADiagnostic) {
  auto enabling = framework.enable({"fake", "", "", "nosuch", 0}, note, nullptr);
  ASSERT_FALSE(enabling);
  EXPECT_EQ(enabling.error().tag, "D_PDESC_ZERO");
  EXPECT_EQ(enabling.error().message, "probe description fake:::nosuch does not match any probes");
}

TEST_F(EnablingTest, DisabledProbeFiresNothing) {
  Seen seen;
  auto enabling = framework.enable({"fake", "", "", "a", 0}, note, &seen);
  ASSERT_TRUE(enabling);
  framework.disable(*enabling);
  framework.disable(*enabling);  // again: nothing
  fire(1);
  fire(77777);  // an id of no probe
  EXPECT_EQ(seen.id, 0u);
}

// A CPU knows some thousands of probes at a time by their ids' low bits.
TEST_F(EnablingTest, ProbesWhoseIdsAreFarApartDoNotMixUp) {
  constexpr ProbeId kMany = 3 * 4096 + 2;
  for (ProbeId id = 3; id <= kMany; ++id)
    framework.probe_create(provider.id, "m", "g", "p" + std::to_string(id), 0, nullptr);
  std::vector<std::string> order;
  Seen near{&order, "near", {}, 0};
  Seen far{&order, "far", {}, 0};
  Seen both{&order, "both", {}, 0};
  const auto name = [](ProbeId id) { return "p" + std::to_string(id); };
  ASSERT_TRUE(framework.enable({"fake", "", "", name(5), 0}, note, &near));
  ASSERT_TRUE(framework.enable({"fake", "", "", name(5 + 4096), 0}, note, &far));
  ASSERT_TRUE(framework.enable({"fake", "", "", name(5 + 4096), 0}, note, &both));
  for (int round = 0; round < 2; ++round) {
    fire(5);
    fire(5 + 2 * 4096);
    fire(5 + 4096);
    fire(5 + 4096);
    EXPECT_EQ(both.id, 5u + 4096);
  }
  const std::vector<std::string> once{"near", "far", "both", "far", "both"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(order, twice);
}

TEST_F(EnablingTest, FindsTheFrameworkOnACpuThatJoinsLater) {
  CpuSet growing{SmpConfig{.count = 1}};
  AddressMap map;
  Framework late(growing, map);
  FakeProvider other;
  ASSERT_EQ(late.register_provider("fake", kFakeAttributes, 0, &other, &other.id), 0);
  late.probe_create(other.id, "m", "f", "a", 0, nullptr);
  Seen seen;
  auto enabling = late.enable({"fake", "", "", "", 0}, note, &seen);
  ASSERT_TRUE(enabling);
  cpus.unbind();
  growing.bind(0);
  std::thread([&] {
    growing.bind_any();
    EXPECT_GT(curcpu->id, 0);
    fire(1);
    growing.unbind();
  }).join();
  growing.unbind();
  EXPECT_EQ(seen.id, 1u);
  late.disable(*enabling);
}

}  // namespace
}  // namespace dtmalloc::dtrace
