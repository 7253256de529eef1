// SPDX-License-Identifier: BSD-2-Clause
// Sessions of one framework beside each other: one opens, compiles, goes and stops again and again
// while another's passes run and threads allocate; also runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace dtmalloc::dtrace {
namespace {

constexpr int kAllocators = 2;
constexpr int kOpener = kAllocators;  // CPUs of the two consumers
constexpr int kConsumer = kAllocators + 1;
constexpr int kRounds = 12;

class SessionStress : public ::testing::Test {
 protected:
  SessionStress() {
    KernelConfig config;
    config.cpus = kAllocators + 2;
    config.mem = 1ull << 30;
    config.mode = RunMode::parallel;
    config.real_clock = true;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(kConsumer);
    type = &kernel->define_type("M_S", "stress");
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
  }
  ~SessionStress() override {
    framework = nullptr;
    kernel->cpus().unbind();
  }

  void allocate(int cpu) {
    kernel->cpus().bind(cpu);
    std::array<void*, 8> blocks{};
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
  }
  // Until the threads have done some more work.
  void let_run() const {
    const std::uint64_t before = pairs.load();
    while (pairs.load() < before + 20) std::this_thread::yield();
  }
  static Result<ProgramId> compile(Session& session, const std::string& text) {
    ProgramSource source;
    source.text = text;
    return session.compile(source);
  }
  std::uint64_t allocations() const { return kernel->type_stats(*type).numallocs; }

  // What one of the sessions that come and go does.
  void come_and_go(int round) {
    static constexpr const char* kPrograms[] = {
        "dtmalloc::stress:malloc {@[probefunc] = sum(arg3);}",
        "dtmalloc::stress:malloc {self->n++; n[cpu] = self->n; trace(n[cpu]);} tick-1ms {x++;}",
        "dtmalloc:::free {this->s = speculation(); speculate(this->s); trace(arg3);} "
        "dtmalloc:::malloc {commit(1);}",
        "inline int twice[int i] = i * 2; struct s {int a; char b[4];}; struct s v; BEGIN "
        "{v.a = twice[4];} dtmalloc::stress: /v.a == 8/ {printf(\"%d %s\", v.a, probename);}",
        "dtmalloc::stress:malloc {exit(0);}",
        "dtmalloc::stress:malloc {trace(nothing);}",  // refused
    };
    const auto kind = static_cast<std::size_t>(round) % std::size(kPrograms);
    std::string out;
    std::string err;
    Session session(*framework, {[&](std::string_view text) { out += text; },
                                 [&](std::string_view text) { err += text; }});
    for (const char* option : {"switchrate=1ms", "aggrate=1ms", "statusrate=1ms", "bufsize=64k"})
      ASSERT_TRUE(session.set_option(option));
    const auto program = compile(session, kPrograms[kind]);
    ASSERT_EQ(program.has_value(), kind != std::size(kPrograms) - 1);
    if (!program || round % 5 == 3) return;  // not enabled
    ASSERT_TRUE(session.enable(*program));
    if (round % 5 == 4) return;  // destroyed before it goes
    ASSERT_TRUE(session.go());
    let_run();
    session.work();
    kernel->cpus().clock().run_due();
    let_run();
    if (round % 3 != 0) session.stop();  // else the destructor has it to do
    ended += session.done() ? 1 : 0;
  }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  malloc_type* type = nullptr;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> pairs{0};
  int ended = 0;
};

// REQ: DTRACE-85
TEST_F(SessionStress, OneComesAndGoesBesideAnother) {
  std::vector<std::thread> threads;
  for (int cpu = 0; cpu < kAllocators; ++cpu) threads.emplace_back([this, cpu] { allocate(cpu); });
  let_run();
  std::string out;
  std::string err;
  Session session(*framework, {[&](std::string_view text) { out += text; },
                               [&](std::string_view text) { err += text; }});
  for (const char* option : {"quiet", "switchrate=1ms", "aggrate=1ms", "statusrate=1ms"})
    ASSERT_TRUE(session.set_option(option));
  const auto program = compile(session, "dtmalloc::stress:malloc {@[cpu] = count();}");
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_TRUE(session.enable(*program));
  const std::uint64_t before = allocations();
  ASSERT_TRUE(session.go());
  const std::uint64_t begun = allocations();
  std::atomic<bool> done{false};
  std::thread opener([this, &done] {
    kernel->cpus().bind(kOpener);
    for (int round = 0; round < kRounds && !HasFailure(); ++round) come_and_go(round);
    kernel->cpus().unbind();
    done = true;
  });
  for (int pass = 0; !done.load(); ++pass) {
    if (pass % 2 == 0) {
      session.work();
    } else {
      kernel->cpus().clock().run_due();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  opener.join();
  const std::uint64_t ending = allocations();
  session.stop();
  const std::uint64_t after = allocations();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  // What came and went took nothing from what stayed. A thread may stand between its statistics and
  // its firing when the statistics are read.
  std::uint64_t total = 0;
  std::istringstream lines(out);
  for (std::uint64_t cpu = 0, count = 0; lines >> cpu >> count;) total += count;
  EXPECT_GE(total + kAllocators, ending - begun) << out;
  EXPECT_LE(total, after - before + kAllocators) << out;
  EXPECT_GT(ended, 0);
  EXPECT_EQ(err, "");
  EXPECT_EQ(framework->enabled_probes(), 0U);
  EXPECT_EQ(type->ks_mti.mti_probes[0], 0U);
}

}  // namespace
}  // namespace dtmalloc::dtrace
