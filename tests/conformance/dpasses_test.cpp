// SPDX-License-Identifier: BSD-2-Clause
// When the consumer looks, and what happens when it does not: idle years, the deadman.

#include <gtest/gtest.h>

#include "dtrace/core/consumer.hpp"
#include "support/traced_machine.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::TracedMachine;

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kYear = 365 * 86400 * kSecond;

Clock& clock_of(TracedMachine& machine) { return machine.kernel->cpus().clock(); }

// REQ: DBUF-50
TEST(Passes, IdleYearsTakeNone) {
  TracedMachine machine;
  ASSERT_TRUE(machine.session->set_option("quiet"));
  ASSERT_EQ(machine.start("BEGIN { printf(\"begin \"); } dtmalloc::aa:malloc { @ = count(); "
                          "printf(\"%d \", timestamp); } tick-3650d { printa(\"%@d \", @); }"),
            "");
  EXPECT_EQ(machine.out, "begin ");
  clock_of(machine).advance(7 * kYear);
  EXPECT_EQ(clock_of(machine).next_event(), 10 * kYear) << "the tick";
  clock_of(machine).advance(kSecond / 2);
  machine.pair();
  EXPECT_EQ(clock_of(machine).next_event(), 7 * kYear + kSecond);
  machine.pair();
  EXPECT_EQ(machine.out, "begin ");
  clock_of(machine).advance(kSecond / 2);
  EXPECT_EQ(machine.out, "begin 220752000500000000 220752000500000000 ");
  machine.out.clear();
  clock_of(machine).advance(3600 * kSecond);  // UMA looks at its zones a few times
  EXPECT_EQ(clock_of(machine).next_event(), 10 * kYear);
  clock_of(machine).advance(23 * kYear);
  EXPECT_EQ(machine.out, "2 2 2 ");
  machine.session->stop();
}

// Of each policy; what a CPU that has just come records is not forgotten.
// REQ: DBUF-50
TEST(Passes, EveryFiringBringsThemBack) {
  for (const char* policy : {"bufpolicy=switch", "bufpolicy=ring", "bufpolicy=fill"}) {
    TracedMachine machine;
    ASSERT_TRUE(machine.session->set_option(policy));
    ASSERT_TRUE(machine.session->set_option("statusrate=2s"));
    ASSERT_EQ(machine.start("dtmalloc::aa:free { exit(7); }"), "");
    clock_of(machine).advance(kYear);
    EXPECT_FALSE(machine.session->done());
    machine.kernel->cpus().move_to(1);
    machine.pair();
    clock_of(machine).advance(2 * kSecond);
    EXPECT_TRUE(machine.session->done()) << policy;
    EXPECT_EQ(machine.session->exit_status(), 7);
    machine.kernel->cpus().move_to(0);
  }
}

// What a consumer that was not heard of for so long says.
std::string after_silence(const std::string& program, const std::vector<std::string>& options,
                          std::uint64_t silence, std::string* out) {
  TracedMachine machine;
  for (const std::string& option : options) EXPECT_TRUE(machine.session->set_option(option));
  EXPECT_EQ(machine.start(program), "");
  clock_of(machine).advance(3 * kSecond);
  {
    const CriticalSection section;  // nothing that falls due runs
    clock_of(machine).advance(silence);
    machine.kernel->free(machine.kernel->malloc(100, machine.type, M_NOWAIT), machine.type);
  }
  clock_of(machine).advance(2 * kSecond);
  const bool done = machine.session->done();
  machine.session->stop();
  *out = machine.out;
  return (done ? "done: " : "") + machine.err;
}

// REQ: DBUF-51
TEST(Deadman, NoticesWhateverTheClauseDoes) {
  const std::string killed =
      "done: dtrace: processing aborted: Abort due to systemic unresponsiveness\n";
  for (const char* clause :
       {"trace(arg3);", "@ = count();", "@[arg3] = sum(arg3);", "x = arg3;", ""}) {
    for (const char* policy : {"bufpolicy=switch", "bufpolicy=ring", "bufpolicy=fill"}) {
      const std::string program =
          std::string("dtmalloc::aa:malloc { ") + clause + " } END { trace(1); }";
      std::string out;
      EXPECT_EQ(after_silence(program, {"quiet", policy}, 11 * kSecond + 1, &out), killed)
          << program << policy;
      EXPECT_EQ(out, "");
      EXPECT_EQ(after_silence(program, {"quiet", policy}, 11 * kSecond, &out), "") << program;
      EXPECT_NE(out, "");
    }
  }
}

// REQ: DBUF-51
TEST(Deadman, WaitsForTheStatusThatWasPromised) {
  std::string out;
  const std::string program = "dtmalloc::aa:malloc { @ = count(); }";
  EXPECT_EQ(after_silence(program, {"quiet", "statusrate=5s"}, 15 * kSecond - 3 * kSecond, &out),
            "");
  EXPECT_NE(after_silence(program, {"quiet", "statusrate=5s"}, 13 * kSecond, &out), "");
  EXPECT_EQ(after_silence("dtmalloc::aa:malloc { @ = count(); } dtmalloc::bb:free { panic(); }",
                          {"quiet", "destructive", "zdefs"}, 100 * kSecond, &out),
            "")
      << "a destructive consumer is waited for";
}

}  // namespace
}  // namespace dtmalloc::dtrace
