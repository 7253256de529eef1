// SPDX-License-Identifier: BSD-2-Clause
// Several CPUs fire at once at one consumer's arrays; also runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "dtrace/core/dynvar.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr int kThreads = 3;

class DynamicStress : public ::testing::Test {
 protected:
  DynamicStress() {
    KernelConfig config;
    config.cpus = kThreads + 1;
    config.mem = 1ull << 30;
    config.mode = RunMode::parallel;
    config.real_clock = true;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(kThreads);
  }
  ~DynamicStress() override { kernel->cpus().unbind(); }
  template <typename Function>
  void on_each_cpu(Function function) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i, &function] {
        kernel->cpus().bind(i);
        function(i);
        kernel->cpus().unbind();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::unique_ptr<Kernel> kernel;
};

// REQ: DVARS-25
TEST_F(DynamicStress, WhatOneCpuStoresStaysUntilItIsFreed) {
  constexpr std::uint64_t kRounds = 4000;
  DynamicSpace space;
  ASSERT_TRUE(space.reserve(20000, 72, kThreads));
  DynamicCpu cpus[kThreads];
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(cpus[i].join(space, i));
  std::atomic<bool> stop{false};
  std::thread cleaner([&] {
    while (!stop.load()) {
      space.clean([&] { kernel->cpus().synchronize(); });
      std::this_thread::yield();
    }
  });
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> stored{0};
  on_each_cpu([&](int id) {
    DynamicCpu& cpu = cpus[id];
    const auto name = [&](std::uint64_t owner, std::uint64_t key) {
      cpu.name[0] = owner;
      cpu.name[1] = key;
      return std::size_t{2};
    };
    std::uint64_t first = 0;
    std::uint64_t address = 0;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const CriticalSection section;
      const auto mine = static_cast<std::uint64_t>(id + 1);
      const std::uint64_t key = round % 40;
      cpu.store(name(mine, key), &round, 8, 8);
      if (cpu.find(name(mine, key), &first, &address)) {
        stored.fetch_add(1, std::memory_order_relaxed);
        if (first != round) wrong.fetch_add(1);
        cpu.remove(name(mine, key));
        if (cpu.find(name(mine, key), &first, &address)) wrong.fetch_add(1);
      }
      // The same few names on every CPU: whatever is there was stored by somebody.
      const std::uint64_t value = round << 8 | 0x5a;
      cpu.store(name(99, round % 5), &value, 8, 8);
      if (cpu.find(name(99, (round + 1) % 5), &first, &address) && (first & 0xff) != 0x5a) {
        wrong.fetch_add(1);
      }
      if (round % 3 == 0) cpu.remove(name(99, (round + 2) % 5));
    }
  });
  stop = true;
  cleaner.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(stored.load(), 0u);
  // Every chunk is there again.
  for (std::uint64_t key = 0; key < 5; ++key) {
    cpus[0].name[0] = 99;
    cpus[0].name[1] = key;
    cpus[0].remove(2);
  }
  for (int pass = 0; pass < 3; ++pass) space.clean([] {});
  const DynamicSpace::Drops before = space.drops();
  const std::uint64_t value = 1;
  for (std::size_t i = 0; i < space.chunks(); ++i) {
    cpus[0].name[0] = 1000 + i;
    cpus[0].store(1, &value, 8, 8);
  }
  const DynamicSpace::Drops after = space.drops();
  EXPECT_EQ(after.empty + after.rinsing + after.dirty,
            before.empty + before.rinsing + before.dirty);
}

// REQ: DVARS-25
TEST_F(DynamicStress, ElementsOfOneCpuAreCountedExactly) {
  malloc_type* type = &kernel->define_type("M_S", "stress");
  Framework framework(kernel->cpus(), kernel->addresses());
  framework.load_standard_providers();
  load_dtmalloc(framework, *kernel);
  std::string out;
  std::string err;
  Session session(framework, {[&](std::string_view text) { out += text; },
                              [&](std::string_view text) { err += text; }});
  ASSERT_TRUE(session.set_option("quiet"));
  ASSERT_TRUE(session.set_option("cleanrate=5000hz"));
  // Room for all that is freed meanwhile: the cleaner runs as late as the host likes.
  ASSERT_TRUE(session.set_option("dynvarsize=16m"));
  ProgramSource source;
  source.text =
      "dtmalloc::stress:malloc { n[cpu]++; self->n++; self->t = probefunc; text[n[cpu] % 7] = "
      "probefunc; text[(n[cpu] + 3) % 7] = 0; m[cpu, self->t] = self->n; }"
      "dtmalloc::stress:free { self->t = 0; }"
      "END { printf(\"%d %d %d %d %d %d\", n[0], n[1], n[2], m[0, \"stress\"], m[1, \"stress\"], "
      "m[2, \"stress\"]); }";
  auto compiled = session.compile(source);
  ASSERT_TRUE(compiled) << compiled.error().message;
  ASSERT_TRUE(session.enable(*compiled));
  ASSERT_TRUE(session.go());
  constexpr int kPairs[kThreads] = {700, 900, 1100};
  on_each_cpu([&](int id) {
    for (int i = 0; i < kPairs[id]; ++i) {
      kernel->free(kernel->malloc(64, type, M_WAITOK), type);
      if (i % 100 == 0) kernel->cpus().clock().run_due();
    }
  });
  session.stop();
  EXPECT_EQ(err, "");
  EXPECT_EQ(out, "700 900 1100 700 900 1100\n");
}

}  // namespace
}  // namespace dtmalloc::dtrace
