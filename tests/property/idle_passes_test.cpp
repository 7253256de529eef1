// SPDX-License-Identifier: BSD-2-Clause
// The consumer's passes that find nothing are left out; what is printed, and when, is what calling
// every one of them gives.

#include <gtest/gtest.h>

#include "dtrace/core/consumer.hpp"
#include "support/op_gen.hpp"
#include "support/traced_machine.hpp"
#include "workload/random.hpp"

namespace dtmalloc::dtrace {
namespace {

using support::SeedRange;
using workload::Random;

constexpr std::uint64_t kMilli = 1000000;
constexpr std::uint64_t kSecond = 1000 * kMilli;

const std::vector<const char*> kClauses = {
    "dtmalloc::aa:malloc { trace(arg3); }",
    "dtmalloc::aa:free { @f = count(); }",
    "dtmalloc::aa:malloc { @k[arg3, cpu] = sum(arg3); } tick-7s { printa(@k); clear(@k); }",
    "dtmalloc::aa:malloc { @q = quantize(arg3); } END { trunc(@q); }",
    "tick-1s { printf(\"%d ms\\n\", timestamp / 1000000); }",
    "tick-3s { x++; } tick-10s { trace(x); }",
    "profile-11s { @p[cpu] = count(); }",
    "tick-333ms /cpu == 9/ { trace(0); }",
    "dtmalloc::aa:malloc { self->s = speculation(); } dtmalloc::aa:malloc /self->s/ "
    "{ speculate(self->s); trace(1); } dtmalloc::aa:free /self->s/ { commit(self->s); "
    "self->s = 0; }",
    "BEGIN { s = speculation(); } dtmalloc::aa:malloc { speculate(s); printf(\"on %d\", cpu); } "
    "tick-5s { commit(s); s = speculation(); }",
    "dtmalloc::aa:free { y[arg3, timestamp] = 1; }",
    "dtmalloc::aa:free { trace(*(int *)0); } ERROR { trace(arg4); }",
    "dtmalloc::aa:free { @e = count(); trace(*(int *)0); } ERROR { trace(*(int *)8); }",
    "dtmalloc::aa:free /++z == 40/ { exit(3); }",
    "tick-4s { setopt(\"switchrate\", \"300ms\"); setopt(\"aggrate\", \"2s\"); }",
    "tick-13s { setopt(\"statusrate\", \"5s\"); }",
    "BEGIN { this->t = 1; } END { trace(timestamp); }",
};

const std::vector<const char*> kOptions = {
    "switchrate=100ms", "switchrate=30s",  "aggrate=70ms",    "aggrate=45s",  "statusrate=250ms",
    "statusrate=9s",    "bufpolicy=ring",  "bufpolicy=fill",  "bufsize=256",  "bufsize=1k",
    "aggsize=256",      "dynvarsize=4k",   "nspec=3",         "specsize=64",  "cleanrate=50ms",
    "temporal=no",      "cpu=1",           "quiet",           "flowindent",   "droptags",
    "oformat=json",     "switchrate=10ms", "statusrate=10ms", "cleanrate=20s"};

// What was printed, each piece with its time.
struct Log {
  std::string text;
  bool refused = false;
};

// One machine under a program, options and a load that the seed decides.
Log run(std::uint64_t seed, bool every_pass) {
  Random random(seed);
  testing::TracedMachine machine;
  Clock& clock = machine.kernel->cpus().clock();
  Log log;
  const auto sink = [&](const char* name) {
    return [&log, &clock, name](std::string_view text) {
      log.text += name + std::to_string(clock.now()) + ": " + std::string(text) + "\n";
    };
  };
  Session session(*machine.framework, SessionSinks{sink("out "), sink("err ")});
  for (std::uint64_t i = random.below(5); i > 0; --i) {
    const char* option = kOptions[random.below(kOptions.size())];
    EXPECT_TRUE(session.set_option(option));
    log.text += std::string(option) + " ";
  }
  std::string program;
  for (std::uint64_t i = 1 + random.below(4); i > 0; --i) {
    program += std::string(kClauses[random.below(kClauses.size())]) + "\n";
  }
  log.text += "\n" + program;
  const auto never_idle = [&] {
    for (Consumer* consumer : machine.framework->impl().consumers)
      consumer->watch().idle.store(false);
  };
  if (every_pass) clock.schedule(5 * kMilli, 5 * kMilli, never_idle);
  if (const std::string refused = testing::TracedMachine::start(session, program);
      !refused.empty()) {
    log.text += refused;
    log.refused = true;
    return log;
  }
  std::vector<void*> blocks;
  const std::uint64_t steps = 20 + random.below(60);
  for (std::uint64_t step = 0; step < steps; ++step) {
    static constexpr std::uint64_t kWaits[] = {
        1, 100, kMilli, 30 * kMilli, 250 * kMilli, kSecond, 3 * kSecond, 20 * kSecond};
    switch (random.below(8)) {
      case 0:
      case 1:
        clock.advance(kWaits[random.below(std::size(kWaits))] * (1 + random.below(3)));
        break;
      case 2:  // up to a point of the passes' grid
        clock.advance(kSecond - clock.now() % kSecond);
        break;
      case 3:
        machine.kernel->cpus().move_to(static_cast<int>(random.below(2)));
        break;
      case 4: {  // passes that fall due wait for the end of the section
        const CriticalSection section;
        clock.advance(random.below(14) * kSecond + random.below(kSecond));
        machine.kernel->free(machine.kernel->malloc(64, machine.type, M_NOWAIT), machine.type);
        clock.advance(random.below(kSecond));
        break;
      }
      case 5:
        if (random.below(4) == 0) session.work();
        break;
      default:
        for (std::uint64_t i = random.below(12); i > 0; --i) {
          clock.advance(100);
          if (blocks.empty() || random.below(2) == 0) {
            blocks.push_back(machine.malloc(16 + random.below(5000)));
          } else {
            machine.kernel->free(blocks.back(), machine.type);
            blocks.pop_back();
          }
        }
        break;
    }
  }
  session.stop();
  log.text += "status " + std::to_string(session.exit_status());
  while (!blocks.empty()) {
    machine.kernel->free(blocks.back(), machine.type);
    blocks.pop_back();
  }
  return log;
}

// REQ: LAW-12
TEST(IdlePasses, LeavingThemOutDoesNotShow) {
  const SeedRange range = support::seeds(100);
  std::uint64_t ran = 0;
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    const Log leapt = run(seed, false);
    const Log walked = run(seed, true);
    if (!leapt.refused) ++ran;
    ASSERT_EQ(leapt.text, walked.text) << "DTM_SEED=" << seed << " DTM_CASES=1";
  }
  EXPECT_GT(ran * 2, range.count) << "most programs are good";
}

}  // namespace
}  // namespace dtmalloc::dtrace
