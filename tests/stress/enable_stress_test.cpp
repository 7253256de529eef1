// SPDX-License-Identifier: BSD-2-Clause
// Enabling and disabling probes while other threads allocate; also runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace dtmalloc::dtrace {
namespace {

// What a callback writes to; freed as soon as disable() has returned.
struct Guarded {
  std::atomic<bool> disabled{false};
  std::atomic<int> late{0};
  std::atomic<std::uint64_t> calls{0};
  std::uint64_t plain[64] = {};  // by CPU, written without synchronisation
};

void note(const ProbeFiring& firing, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
          std::uintptr_t) {
  auto& guarded = *static_cast<Guarded*>(firing.context);
  if (guarded.disabled.load(std::memory_order_relaxed)) guarded.late.fetch_add(1);
  guarded.calls.fetch_add(1, std::memory_order_relaxed);
  ++guarded.plain[curcpu->id];
}

class EnableStress : public ::testing::Test {
 protected:
  static constexpr int kThreads = 3;
  static constexpr int kRounds = 24;

  EnableStress() {
    KernelConfig config;
    config.cpus = kThreads + 1;
    config.mem = 1ull << 30;
    config.mode = RunMode::parallel;
    config.real_clock = true;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(kThreads);
    type = &kernel->define_type("M_S", "stress");
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
    framework->open();
  }
  ~EnableStress() override {
    framework->close();
    framework = nullptr;
    kernel->cpus().unbind();
  }
  void start() {
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i] {
        kernel->cpus().bind(i);
        std::array<void*, 16> blocks{};
        for (std::size_t n = 0; !stop.load(std::memory_order_relaxed); ++n) {
          void*& block = blocks[n % blocks.size()];
          if (block != nullptr) kernel->free(block, type);
          block = kernel->malloc(16 + n % 500, type, M_WAITOK);
          pairs.fetch_add(1, std::memory_order_relaxed);
        }
        for (void* block : blocks) {
          if (block != nullptr) kernel->free(block, type);
        }
        kernel->cpus().unbind();
      });
    }
    while (pairs.load() == 0) std::this_thread::yield();
  }
  void join() {
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
  // Until the threads have done some more work.
  void let_run() {
    const std::uint64_t before = pairs.load();
    while (pairs.load() < before + 50) std::this_thread::yield();
  }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  malloc_type* type = nullptr;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> pairs{0};
};

// REQ: DTRACE-09
TEST_F(EnableStress, NoCallbackRunsAfterDisable) {
  start();
  std::uint64_t calls = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto guarded = std::make_unique<Guarded>();
    auto enabling = framework->enable({"dtmalloc", "", "stress", "", 0}, note, guarded.get());
    ASSERT_TRUE(enabling);
    let_run();
    framework->disable(*enabling);
    guarded->disabled = true;
    EXPECT_EQ(guarded->late.load(), 0);
    std::uint64_t plain = 0;
    for (const std::uint64_t count : guarded->plain) plain += count;  // nobody writes any more
    EXPECT_EQ(plain, guarded->calls.load());
    calls += plain;
  }
  join();
  EXPECT_GT(calls, 0u);
  EXPECT_EQ(type->ks_mti.mti_probes[0], 0u);
  EXPECT_EQ(framework->enabled_probes(), 0u);
}

TEST_F(EnableStress, CallbacksComeAndGoBesideEachOther) {
  start();
  std::array<Guarded, 4> guarded;
  std::array<EnablingId, 4> ids{};
  for (int round = 0; round < kRounds; ++round) {
    const auto slot = static_cast<std::size_t>(round) % guarded.size();
    if (ids[slot] != 0) framework->disable(ids[slot]);
    auto enabling = framework->enable({"dtmalloc", "", "stress", round % 2 == 0 ? "malloc" : "", 0},
                                      note, &guarded[slot]);
    ASSERT_TRUE(enabling);
    ids[slot] = *enabling;
    if (round % 8 == 0) let_run();
  }
  for (const EnablingId id : ids) framework->disable(id);
  join();
  for (const Guarded& one : guarded) {
    std::uint64_t plain = 0;
    for (const std::uint64_t count : one.plain) plain += count;
    EXPECT_EQ(plain, one.calls.load());
    EXPECT_GT(plain, 0u);  // every slot has had a callback while the threads went on
  }
}

// The sum of the numbers that end the lines of a printed aggregation.
std::uint64_t total(const std::string& out) {
  std::istringstream lines(out);
  std::uint64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t last = line.find_last_of(' ');
    if (line.find("  stress ") == 0) sum += std::stoull(line.substr(last + 1));
  }
  return sum;
}

// The command's own way: sessions come and go, each with an aggregation that passes collect in
// pieces; the counts agree with the statistics within what ran beside the enabling.
TEST_F(EnableStress, SessionsWithAggregationsComeAndGo) {
  start();
  const auto allocations = [&] { return kernel->type_stats(*type).numallocs; };
  for (int round = 0; round < 4; ++round) {
    std::string out;
    std::string err;
    Session session(*framework, {[&](std::string_view text) { out += text; },
                                 [&](std::string_view text) { err += text; }});
    for (const char* rate : {"switchrate=1ms", "aggrate=1ms", "statusrate=1ms"})
      ASSERT_TRUE(session.set_option(rate));
    auto program = session.compile(
        {.kind = ProgramSource::specifier,
         .text = "dtmalloc::stress:malloc {@[stringof args[0]->ks_shortdesc, cpu] = count();}",
         .name = {},
         .context = ProgramSource::probe_name,
         .args = {}});
    ASSERT_TRUE(program) << program.error().message;
    ASSERT_TRUE(session.enable(*program));
    const std::uint64_t before = allocations();
    ASSERT_TRUE(session.go());
    const std::uint64_t begun = allocations();
    for (int part = 0; part < 2; ++part) {
      let_run();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (part % 2 == 0)
        session.work();
      else
        kernel->cpus().clock().run_due();
    }
    const std::uint64_t ending = allocations();
    session.stop();
    const std::uint64_t after = allocations();
    // Each thread may stand between its statistics and its firing when the statistics are read.
    EXPECT_GE(total(out) + kThreads, ending - begun) << out;
    EXPECT_LE(total(out), after - before + kThreads) << out;
    EXPECT_GE(total(out), 100u) << out;
    EXPECT_FALSE(session.had_errors()) << err;
  }
  join();
}

}  // namespace
}  // namespace dtmalloc::dtrace
