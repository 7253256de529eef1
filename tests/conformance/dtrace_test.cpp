// SPDX-License-Identifier: BSD-2-Clause
// The framework and the consumer as a D program sees them: each row is a program and the bytes that
// dtrace(1) prints for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dtmalloc::dtrace {
namespace {

constexpr const char* kHeading = "CPU     ID                    FUNCTION:NAME\n";

class DtraceTest : public ::testing::Test {
 protected:
  DtraceTest() {
    KernelConfig config;
    config.cpus = 2;
    config.fixed_cpus = true;
    config.mem = 1ull << 30;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    type = &kernel->define_type("M_A", "a type");
    other = &kernel->define_type("M_B", "CAM CCB");
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
  }
  ~DtraceTest() override {
    session = nullptr;
    framework = nullptr;
    kernel->cpus().unbind();
  }
  Session& open() {
    out.clear();
    err.clear();
    session = nullptr;
    session = std::make_unique<Session>(
        *framework, SessionSinks{[this](std::string_view text) { out += text; },
                                 [this](std::string_view text) { err += text; }});
    return *session;
  }
  // What refuses the program, or an empty string.
  std::string start(const std::string& program) {
    ProgramSource source;
    source.text = program;
    auto compiled = session->compile(source);
    if (!compiled) return message_of(source, compiled.error());
    auto enabled = session->enable(*compiled);
    if (!enabled) return enabled.error().message;
    auto started = session->go();
    return started ? "" : started.error().message;
  }
  // The output of a program on a quiet consumer, around what `work` does.
  std::string run(
      const std::string& program, const std::function<void()>& work = [] {}, bool quiet = true) {
    open();
    if (quiet) {
      EXPECT_TRUE(session->set_option("quiet"));
    }
    EXPECT_EQ(start(program), "");
    work();
    session->stop();
    return out;
  }
  void pair(std::size_t size, malloc_type* of) {
    kernel->free(kernel->malloc(size, of, M_WAITOK), of);
  }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  std::unique_ptr<Session> session;
  malloc_type* type = nullptr;
  malloc_type* other = nullptr;
  std::string out, err;
};

// REQ: DTMALLOC-16
TEST_F(DtraceTest, ManualPageExample) {
  open();
  ASSERT_EQ(start("dtmalloc:::malloc {@[stringof args[0]->ks_shortdesc] = count()}"), "");
  pair(100, type);
  pair(100, type);
  pair(100, other);
  session->stop();
  EXPECT_EQ(err, "dtrace: description 'dtmalloc:::malloc ' matched 7 probes\n");
  EXPECT_EQ(out,
            "\n"
            "  CAM CCB                                                           1\n"
            "  a type                                                            2\n");
}

// REQ: DTRACE-20
TEST_F(DtraceTest, DefaultOutput) {
  EXPECT_EQ(run(
                "dtmalloc::a_type:malloc {trace(probefunc); trace(arg3); trace(args[4]);}",
                [this] { pair(100, type); }, false),
            std::string(kHeading) +
                "  0      6                    a_type:malloc "
                "  a_type                           "
                "              128"
                "        3\n"
                "\n");
  EXPECT_EQ(err, "dtrace: description 'dtmalloc::a_type:malloc ' matched 1 probe\n");
}

// REQ: DTRACE-21
TEST_F(DtraceTest, WhichClausesMakeALine) {
  EXPECT_EQ(run(
                "BEGIN {}", [] {}, false),
            std::string(kHeading) + "  0      1                           :BEGIN \n\n");
  EXPECT_EQ(run(
                "BEGIN {x = 1;}", [] {}, false),
            "\n");
  EXPECT_EQ(run(
                "BEGIN {@x = count();}", [] {}, false),
            "\n                1\n");
  EXPECT_EQ(run(
                "BEGIN {exit(0);}", [] {}, false),
            std::string(kHeading) + "  0      1                           :BEGIN \n\n");
  EXPECT_EQ(run(
                "BEGIN {printf(\"hi\");}", [] {}, false),
            std::string(kHeading) + "  0      1                           :BEGIN hi\n\n");
  EXPECT_EQ(run("BEGIN {}"), "\n");
}

// REQ: DTRACE-22
TEST_F(DtraceTest, QuietStillPrintsTheFinalNewline) {
  EXPECT_EQ(run("BEGIN {trace(42); trace(\"s\");}"), "42s\n");
  EXPECT_EQ(err, "");
}

// REQ: DTRACE-23
TEST_F(DtraceTest, ExitInBeginSkipsLaterBeginClausesButNotEnd) {
  EXPECT_EQ(run("BEGIN {printf(\"a\"); exit(3);} BEGIN {printf(\"b\");} END {printf(\"c\");}"),
            "ac\n");
  EXPECT_EQ(session->exit_status(), 3);
  EXPECT_TRUE(session->done());
  EXPECT_EQ(run("BEGIN {exit(3);} END {exit(5);}"), "\n");
  EXPECT_EQ(session->exit_status(), 5);
  // Two exit() in one clause: its whole record is discarded.
  EXPECT_EQ(run("BEGIN {printf(\"a\"); exit(3); exit(4);}"), "\n");
  EXPECT_EQ(session->exit_status(), 0);
}

// REQ: DTRACE-23
TEST_F(DtraceTest, NothingFiresAfterExitUntilEnd) {
  EXPECT_EQ(run("dtmalloc::a_type:malloc {@n = count(); exit(0);} "
                "dtmalloc::a_type:malloc {@later = count();} END {printf(\"end\");}",
                [this] {
                  pair(16, type);
                  pair(16, type);
                }),
            "end\n                1\n");
}

// REQ: DTRACE-24
TEST_F(DtraceTest, ExitIsNoticedAtTheNextStatusCheck) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_EQ(start("dtmalloc::a_type:malloc {printf(\"x\"); exit(7);}"), "");
  pair(16, type);
  EXPECT_FALSE(session->done());
  kernel->cpus().clock().advance(1000000000);
  EXPECT_TRUE(session->done());
  EXPECT_EQ(session->exit_status(), 7);
  EXPECT_EQ(out, "x\n");
  session->stop();
  EXPECT_EQ(out, "x\n");
}

// REQ: DTRACE-25
TEST_F(DtraceTest, FaultDiscardsTheRecordKeepsSideEffectsAndGoesOn) {
  EXPECT_EQ(run("BEGIN {x = 5; printf(\"no\"); trace(*(int *)0);} BEGIN {printf(\"%d\", x);}"),
            "5\n");
  EXPECT_EQ(err.rfind("dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): "
                      "invalid address (0x0) in action #3 at DIF offset ",
                      0),
            0u)
      << err;
  EXPECT_TRUE(session->had_errors());
  run("BEGIN {y = 0; trace(1 / y);}");
  EXPECT_EQ(err.rfind("dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): "
                      "divide-by-zero in action #2 at DIF offset ",
                      0),
            0u)
      << err;
  run("BEGIN / *(int *)8/ {}");
  EXPECT_EQ(err.rfind("dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): "
                      "invalid address (0x8) in predicate at DIF offset ",
                      0),
            0u)
      << err;
}

// REQ: DTRACE-26
TEST_F(DtraceTest, ActionNumbersOfAggregations) {
  for (const char* program : {"BEGIN {@ = sum(*(int *)0);}", "BEGIN {@[*(int *)0] = count();}"}) {
    run(program);
    EXPECT_NE(err.find(" in action #2 at DIF offset "), std::string::npos) << err;
  }
}

// REQ: DTRACE-27
TEST_F(DtraceTest, ErrorClausesSeeTheFault) {
  EXPECT_EQ(run("ERROR {printf(\"%d %d %d %d\", arg1, arg2, arg4, arg5);} "
                "BEGIN {trace(*(int *)16);}"),
            "2 1 1 16\n");
  EXPECT_NE(err.find("enabled probe ID 2"), std::string::npos);
  // A fault inside ERROR is only counted.
  run("ERROR {trace(*(int *)0);} BEGIN {trace(*(int *)0);}");
  EXPECT_NE(err.find("dtrace: 1 error in ERROR probe enabling\n"), std::string::npos) << err;
}

// REQ: DTRACE-28
TEST_F(DtraceTest, SpaceIsReservedBeforeThePredicate) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("bufsize=64"));
  ASSERT_TRUE(session->set_option("switchrate=1000sec"));
  // Records of 24 bytes: two fit in 64.
  ASSERT_EQ(start("dtmalloc::a_type:malloc {trace(arg3); n++;} END {printf(\" %d\", n);}"), "");
  for (int i = 0; i < 5; ++i) pair(16, type);
  session->stop();
  EXPECT_EQ(out, "1616\n");
  EXPECT_EQ(err, "dtrace: 4 drops on CPU 0\n");  // three mallocs and END
  EXPECT_TRUE(session->had_errors());
  EXPECT_EQ(run("dtmalloc::a_type:malloc /arg3 > 100/ {trace(arg3);}",
                [this] {
                  pair(16, type);
                  pair(128, type);
                }),
            "128\n");
}

TEST_F(DtraceTest, BufferSmallerThanARecordIsRefused) {
  open();
  ASSERT_TRUE(session->set_option("bufsize=64"));
  EXPECT_EQ(start("BEGIN {trace(execname);}"),
            "could not enable tracing: Enabling exceeds size of buffer");
}

// REQ: DTRACE-74
TEST_F(DtraceTest, RecordsThatFitInNoBufferAreRefused) {
  constexpr const char* kExceeds = "could not enable tracing: Enabling exceeds size of buffer";
  open();
  ASSERT_TRUE(session->set_option("strsize=4294967290"));
  EXPECT_EQ(start("BEGIN {x = \"abc\"; trace(x);}"), kExceeds);
  open();
  ASSERT_TRUE(session->set_option("strsize=4294967295"));
  EXPECT_EQ(start("BEGIN {trace(execname);}"), kExceeds);
  // 1024 strings of 4m are 2^32 bytes.
  std::string many = "BEGIN {printf(\"";
  for (int i = 0; i < 1024; ++i) many += "%s";
  many += '"';
  for (int i = 0; i < 1024; ++i) many += ", execname";
  open();
  ASSERT_TRUE(session->set_option("strsize=4m"));
  EXPECT_EQ(start(many + ");}"), kExceeds);
  open();
  ASSERT_TRUE(session->set_option("strsize=2g"));
  EXPECT_EQ(start("BEGIN {@[execname, execname] = count();}"), kExceeds);
  // Variables of such strings cost only what is written to them.
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("strsize=1g"));
  EXPECT_EQ(start("BEGIN {x = \"abc\"; printf(\"%d\", strlen(x));}"), "");
  session->stop();
  EXPECT_EQ(out, "3\n");
}

// REQ: DTRACE-75
TEST_F(DtraceTest, BuffersThatTheHostRefuses) {
  open();
  ASSERT_TRUE(session->set_option("bufresize=manual"));
  ASSERT_TRUE(session->set_option("bufsize=100000t"));
  EXPECT_EQ(start("BEGIN {}"), "could not enable tracing: Cannot allocate memory");
  // Only the size that was refused is halved.
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("bufsize=100000t"));
  EXPECT_EQ(start("BEGIN {@ = count();}"), "");
  session->stop();
  EXPECT_EQ(out, "\n                1\n");
  EXPECT_EQ(err.rfind("dtrace: buffer size lowered to ", 0), 0u) << err;
  EXPECT_EQ(err.find("aggregation size"), std::string::npos) << err;
}

// REQ: DTRACE-76
TEST_F(DtraceTest, SmallBuffersWithAggregations) {
  constexpr const char* kExceeds = "could not enable tracing: Enabling exceeds size of buffer";
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("bufsize=8"));
  EXPECT_EQ(start("BEGIN {@[probename] = count();}"), "");
  session->stop();
  EXPECT_EQ(out, "\n  BEGIN                                                             1\n");
  for (const char* size : {"aggsize=0", "aggsize=7"}) {
    open();
    ASSERT_TRUE(session->set_option(size));
    EXPECT_EQ(start("BEGIN {@ = count();}"), kExceeds) << size;
  }
  open();
  ASSERT_TRUE(session->set_option("aggsize=8"));
  EXPECT_EQ(start("BEGIN {@ = count();}"), "");
  session->stop();
  EXPECT_NE(err.find("dtrace: 1 aggregation drop on CPU 0\n"), std::string::npos) << err;
  open();
  ASSERT_TRUE(session->set_option("bufsize=7"));
  EXPECT_EQ(start("BEGIN {}"), kExceeds);
}

// REQ: DTRACE-29
TEST_F(DtraceTest, AggregationDropsAreReported) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("aggsize=256"));
  ASSERT_EQ(start("dtmalloc::a_type:malloc {@[n++] = count();}"), "");
  for (int i = 0; i < 20; ++i) pair(16, type);
  session->stop();
  EXPECT_NE(err.find(" aggregation drops on CPU 0\n"), std::string::npos) << err;
}

// REQ: DTRACE-60
TEST_F(DtraceTest, BeginOfOneConsumerIsNotTheOthers) {
  std::string other_out;
  Session first(*framework, {[&](std::string_view text) { other_out += text; }, {}});
  ASSERT_TRUE(first.set_option("quiet"));
  ProgramSource source;
  source.text = "BEGIN {printf(\"first\");} END {printf(\"over\");}";
  auto program = first.compile(source);
  ASSERT_TRUE(program);
  ASSERT_TRUE(first.enable(*program));
  ASSERT_TRUE(first.go());
  EXPECT_EQ(run("BEGIN {printf(\"second\");}"), "second\n");
  EXPECT_EQ(other_out, "first");
  first.stop();
  EXPECT_EQ(other_out, "firstover\n");
}

// REQ: DTRACE-61
TEST_F(DtraceTest, RetainedProgramsMeetProbesThatAppearLater) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("zdefs"));
  ASSERT_EQ(start("dtmalloc::late:malloc {printf(\"%d;\", arg3);}"), "");
  malloc_type& late = kernel->define_type("M_LATE", "late");
  pair(16, &late);
  EXPECT_FALSE(session->done());
  framework->open();  // another consumer
  pair(32, &late);
  session->stop();
  framework->close();
  EXPECT_EQ(out, "32;\n");
}

// REQ: DTRACE-62
TEST_F(DtraceTest, TimestampIsOneWithinAClause) {
  EXPECT_EQ(run("dtmalloc::a_type:malloc {printf(\"%d %d\", timestamp == timestamp, timestamp);}",
                [this] {
                  kernel->cpus().clock().advance(1234);
                  pair(16, type);
                }),
            "1 1234\n");
}

// REQ: DTRACE-63
TEST_F(DtraceTest, RecordsOfAllCpusComeInTheOrderOfTime) {
  EXPECT_EQ(run("dtmalloc::a_type:malloc {printf(\"%d \", cpu);}",
                [this] {
                  for (const int cpu : {1, 0, 0, 1, 0}) {
                    kernel->cpus().move_to(cpu);
                    kernel->cpus().clock().advance(100);
                    pair(16, type);
                  }
                }),
            "1 0 0 1 0 \n");
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("temporal=no"));
  ASSERT_EQ(start("dtmalloc::a_type:malloc {printf(\"%d \", cpu);}"), "");
  for (const int cpu : {1, 0, 0, 1, 0}) {
    kernel->cpus().move_to(cpu);
    kernel->cpus().clock().advance(100);
    pair(16, type);
  }
  kernel->cpus().clock().advance(2000000000);
  EXPECT_EQ(out, "0 0 0 1 1 ");
}

// REQ: DTRACE-64
TEST_F(DtraceTest, BeginRunsAsTheCommandOnCpuZero) {
  kernel->cpus().move_to(1);
  EXPECT_EQ(run("BEGIN {printf(\"%s %d\", execname, cpu);} END {printf(\" %d\", cpu);}"),
            "dtrace 0 0\n");
  kernel->cpus().move_to(0);
}

// REQ: DTRACE-65
TEST_F(DtraceTest, AggregationsPrintAtTheEndUnlessPrintaDid) {
  EXPECT_EQ(run("BEGIN {@c = count(); @s = sum(-3); @m = max(9);} END {printa(@s);}"),
            "\n               -3\n"
            "\n                1\n                9\n");
  EXPECT_EQ(run("BEGIN {@a[\"k\"] = sum(3); @b[\"k\"] = sum(4); "
                "printa(\"%s %@d %@d\\n\", @a, @b);}"),
            "k 3 4\n\n");
  EXPECT_EQ(run("BEGIN {@a[\"x\"] = sum(1); @b[\"x\"] = sum(2); @b[\"y\"] = sum(7); "
                "printa(@a, @b);}"),
            "\n"
            "  y                                                                 0"
            "                7\n"
            "  x                                                                 1"
            "                2\n"
            "\n");
}

// REQ: DTRACE-66
TEST_F(DtraceTest, ConsumerActionsOnAggregations) {
  EXPECT_EQ(run("BEGIN {@ = sum(1000); normalize(@, 10); printa(\"%@d\\n\", @);}"), "100\n\n");
  EXPECT_EQ(run("BEGIN {@ = sum(1000); normalize(@, 10); denormalize(@); printa(\"%@d\\n\", @);}"),
            "1000\n\n");
  EXPECT_EQ(run("BEGIN {@[1] = sum(1); @[2] = sum(2); @[3] = sum(3); trunc(@, 1); "
                "printa(\"%d %@d\\n\", @);}"),
            "3 3\n\n");
  EXPECT_EQ(run("BEGIN {@[1] = sum(5); clear(@);}"), "\n        1                0\n");
  EXPECT_EQ(run("BEGIN {@a = avg(2); @a = avg(5); @s = stddev(2); @s = stddev(6); "
                "printa(\"%@d \", @a); printa(\"%@d\", @s);}"),
            "3 2\n");
}

// REQ: DTRACE-67
TEST_F(DtraceTest, Listing) {
  open();
  ProbeDescription description;
  description.name = "BEGIN";
  EXPECT_TRUE(session->list(&description));
  EXPECT_EQ(out,
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "    1     dtrace                                                     BEGIN\n");
  out.clear();
  description.name = "nosuch";
  EXPECT_FALSE(session->list(&description));
  EXPECT_EQ(out, "   ID   PROVIDER            MODULE                          FUNCTION NAME\n");
  EXPECT_EQ(err, "dtrace: failed to match :::nosuch: No probe matches description\n");
  out.clear();
  EXPECT_TRUE(session->list(nullptr));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1 + 3 + 2 * 7 + 13);  // with those of profile
}

// REQ: DTRACE-68
TEST_F(DtraceTest, Messages) {
  open();
  EXPECT_EQ(start("dtmalloc::no_such_type:malloc {}")
                .rfind("dtrace: invalid probe specifier dtmalloc::no_such_type:malloc {}: probe "
                       "description dtmalloc::no_such_type:malloc does not match any probes\n",
                       0),
            0u);
  ProgramSource script;
  script.kind = ProgramSource::script;
  script.name = "x.d";
  script.text = "BEGIN\n{\n  trace(nope);\n}\n";
  auto compiled = session->compile(script);
  ASSERT_FALSE(compiled);
  EXPECT_EQ(message_of(script, compiled.error())
                .rfind("dtrace: failed to compile script x.d: line 3: failed to resolve nope: "
                       "Unknown variable name\n",
                       0),
            0u)
      << message_of(script, compiled.error());
  ASSERT_TRUE(session->set_option("errtags"));
  compiled = session->compile(script);
  ASSERT_FALSE(compiled);
  EXPECT_EQ(message_of(script, compiled.error())
                .rfind("dtrace: failed to compile script x.d: [D_IDENT_UNDEF] line 3: ", 0),
            0u);
  script.text = "BEGIN\n{\n  trace(1);\n}\nEND {}\n";
  compiled = session->compile(script);
  ASSERT_TRUE(compiled);
  ASSERT_TRUE(session->enable(*compiled));
  EXPECT_EQ(err, "dtrace: script 'x.d' matched 2 probes\n");
}

// REQ: DTRACE-69
TEST_F(DtraceTest, NoProbes) {
  open();
  EXPECT_EQ(session->go().error().message, "no probes specified");
  open();
  ASSERT_TRUE(session->set_option("zdefs"));
  ProgramSource source;
  source.text = "nosuch:::{}";
  auto compiled = session->compile(source);
  ASSERT_TRUE(compiled);
  ASSERT_TRUE(session->set_option("zdefs=no"));
  ASSERT_TRUE(session->enable(*compiled));
  EXPECT_EQ(session->go().error().message, "no probes matched");
}

// REQ: DTRACE-70
TEST_F(DtraceTest, AggregationsOfAllCpusAreMerged) {
  EXPECT_EQ(run("dtmalloc::a_type:malloc {@n = count(); @s = sum(arg3); @lo = min(arg3);}",
                [this] {
                  for (const int cpu : {1, 0, 1}) {
                    kernel->cpus().move_to(cpu);
                    pair(cpu == 1 ? 16 : 32, type);
                    kernel->cpus().clock().advance(700000000);
                  }
                }),
            "\n                3\n               64\n               16\n");
}

// REQ: DTRACE-71
TEST_F(DtraceTest, FollowsPointersAndFaultsOutsideTheMachine) {
  EXPECT_EQ(run("dtmalloc::a_type:malloc {printf(\"%d %d %s|\", args[2]->mts_numallocs, "
                "args[1]->mti_probes[0] == id, stringof args[0]->ks_next->ks_shortdesc);}",
                [this] { pair(16, type); }),
            "1 1 UMAHash|\n");
  EXPECT_EQ(run("dtmalloc::a_type:malloc {trace(*(char *)(arg2 + 0x100000000000));}",
                [this] { pair(16, type); }),
            "\n");
  EXPECT_NE(err.find("invalid address (0x"), std::string::npos) << err;
}

// REQ: DTRACE-72
TEST_F(DtraceTest, TickFiresOnTheMachinesClock) {
  const auto wait = [this] {
    for (int i = 0; i < 7; ++i) kernel->cpus().clock().advance(500000000);
  };
  EXPECT_EQ(
      run("tick-1sec {printf(\"%d %s %d %d;\", ++n, execname, cpu, timestamp / 1000000);}", wait),
      "1 dtrace 0 1000;2 dtrace 0 2000;3 dtrace 0 3000;\n");
  EXPECT_EQ(run("profile-1 {@[cpu] = count();}", wait),
            "\n        0                3\n        1                3\n");
  EXPECT_EQ(run("tick-2 {exit(7);} END {printf(\"%s\", \"end\");}", wait), "end\n");
  EXPECT_EQ(session->exit_status(), 7);
  EXPECT_EQ(framework->enabled_probes(), 0u);
  open();
  EXPECT_EQ(start("tick-1fortnight {}").rfind("dtrace: invalid probe specifier", 0), 0u);
}

// REQ: DTRACE-77
TEST_F(DtraceTest, NormalizingByZeroAbortsProcessing) {
  EXPECT_EQ(run("BEGIN {@ = count(); printf(\"a\"); normalize(@, 0); printf(\"b\");} "
                "BEGIN {printf(\"c\");} END {printf(\"d\");}"),
            "a");
  EXPECT_EQ(err, "dtrace: processing aborted: Invalid normalization\n");
  EXPECT_TRUE(session->done());
  EXPECT_EQ(session->exit_status(), 1);
  EXPECT_EQ(framework->enabled_probes(), 0u);
  // In the last pass too, whatever exit() said.
  EXPECT_EQ(run("BEGIN {@ = count(); exit(3);} END {normalize(@, 0);}"), "");
  EXPECT_EQ(session->exit_status(), 1);
}

// REQ: DTRACE-78
TEST_F(DtraceTest, PassesOfSeveralThreadsAreSerialised) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_EQ(start("dtmalloc::a_type:malloc {printf(\"%d\\n\", arg3); @[arg3] = count();}"), "");
  std::atomic<bool> done{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&] {
      while (!done) session->work();
    });
  }
  for (int i = 0; i < 300; ++i) {
    pair(16, type);
    kernel->cpus().clock().advance(10000000);
  }
  done = true;
  for (std::thread& worker : workers) worker.join();
  session->stop();
  std::string expected;
  for (int i = 0; i < 300; ++i) expected += "16\n";
  EXPECT_EQ(out, expected + "\n               16              300\n");
  EXPECT_EQ(err, "");
}

// REQ: DTRACE-51
TEST_F(DtraceTest, AnEmptyValueUnsets) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  EXPECT_TRUE(session->quiet());
  ASSERT_TRUE(session->set_option("quiet="));
  EXPECT_FALSE(session->quiet());
  ASSERT_TRUE(session->set_option("quiet"));
  EXPECT_TRUE(session->quiet());
  ASSERT_TRUE(session->set_option("quiet="));
  EXPECT_FALSE(session->quiet());
  ASSERT_TRUE(session->set_option("quiet"));
  EXPECT_EQ(start("#pragma D option quiet=\nBEGIN {}"), "");
  EXPECT_FALSE(session->quiet());
}

// REQ: DTRACE-80
TEST_F(DtraceTest, MacroVariablesAreThoseOfTheCommandsProcess) {
  EXPECT_EQ(run("BEGIN {printf(\"%d %d %d %d\", $pid == pid, $ppid == ppid, $uid == uid, $gid == "
                "gid);}"),
            "1 1 1 1\n");
  EXPECT_EQ(
      run("BEGIN {printf(\"%d %d %d %d %d %d %d %d %d %d %d\", $pid, $ppid, $pgid, $sid, $uid, "
          "$euid, $gid, $egid, $taskid, $projid, $target);}"),
      "1000 999 1000 999 0 0 0 0 0 0 0\n");
}

// REQ: DTRACE-81
TEST_F(DtraceTest, FlowIndentOfOtherProbes) {
  open();
  ASSERT_TRUE(session->set_option("flowindent"));
  EXPECT_EQ(start("BEGIN {}"), "");
  session->stop();
  EXPECT_EQ(out,
            "CPU FUNCTION                                 \n"
            "  0 | :BEGIN                                  \n"
            "\n");
  // Quiet: heading and prefix are printed, the record's newline is not.
  open();
  ASSERT_TRUE(session->set_option("flowindent"));
  ASSERT_TRUE(session->set_option("quiet"));
  EXPECT_EQ(start("dtmalloc::a_type:malloc {printf(\"%d\\n\", arg3);}"), "");
  pair(16, type);
  session->stop();
  EXPECT_EQ(out,
            "CPU FUNCTION                                 \n"
            "  0 | a_type:malloc                           16\n"
            "\n");
}

// REQ: DTRACE-90
TEST_F(DtraceTest, TextOfKernelStructuresShowsSimulatedAddresses) {
  // The address of the name as bytes: simulated ones begin with 0xffffffff8.
  const auto shown = [this](const char* program) {
    return run(program, [this] { pair(16, type); });
  };
  EXPECT_EQ(shown("dtmalloc::a_type:malloc {this->s = (char *)args[0] + 20; "
                  "printf(\"%S\", stringof(this->s));}")
                .substr(0, 16),
            "\\377\\377\\377\\377");
  EXPECT_EQ(shown("dtmalloc::a_type:malloc {this->s = (char *)args[0] + 20; "
                  "printf(\"%S\", substr(this->s, 0, 4));}"),
            "\\377\\377\\377\\377\n");
  EXPECT_EQ(shown("dtmalloc::a_type:malloc {this->s = (char *)args[0] + 20; printf(\"%d\", "
                  "strlen(this->s) >= 4 && index(this->s, \"\\xff\\xff\\xff\\xff\") == 0);}"),
            "1\n");
}

// REQ: DTRACE-91
TEST_F(DtraceTest, VariablesOfHugeStringsDoNotOverlap) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_TRUE(session->set_option("strsize=4294967295"));
  EXPECT_EQ(start("BEGIN {a = \"abc\"; b = \"de\"; this->y = \"f\"; "
                  "printf(\"%d %d %d\", strlen(a), strlen(b), strlen(this->y));}"),
            "");
  session->stop();
  EXPECT_EQ(out, "3 2 1\n");
  open();
  ASSERT_TRUE(session->set_option("strsize=4294967295"));
  EXPECT_EQ(start("BEGIN {a = b = c = d = e = f = g = h = i = \"\";}"),
            "could not enable tracing: Cannot allocate memory");
}

// REQ: DTMALLOC-18
TEST_F(DtraceTest, TypesThatShareTheirProbesAreNamedAtTheEnd) {
  kernel->define_type("M_C", "a_type");  // registered last: the probes are its
  const std::string note =
      "dtmalloc: types 'a_type' and 'a type' share dtmalloc::a_type:malloc and "
      "dtmalloc::a_type:free, which fire for 'a_type' and never for 'a type'\n";
  EXPECT_EQ(run(
                "dtmalloc:::malloc {@ = count();}", [this] { pair(16, type); }, false),
            "\n");
  EXPECT_EQ(err.substr(err.find('\n') + 1), note);
  // Both probes are enabled, once is enough; nothing when neither is, or when quiet.
  run(
      "dtmalloc::: {@ = count();}", [] {}, false);
  EXPECT_EQ(err.substr(err.find('\n') + 1), note);
  run(
      "dtmalloc::temp: {@ = count();}", [] {}, false);
  EXPECT_EQ(err.substr(err.find('\n') + 1), "");
  run("dtmalloc::: {@ = count();}");
  EXPECT_EQ(err, "");
}

// REQ: DTRACE-50
TEST_F(DtraceTest, OptionsOfOneSessionAreNotTheOthers) {
  open();
  EXPECT_EQ(start("#pragma D option quiet\nBEGIN {trace(1);}"), "");
  std::string second;
  Session loud(*framework, {[&](std::string_view text) { second += text; }, {}});
  ProgramSource source;
  source.text = "BEGIN {trace(2);}";
  const auto compiled = loud.compile(source);
  ASSERT_TRUE(compiled);
  ASSERT_TRUE(loud.enable(*compiled));
  ASSERT_TRUE(loud.go());
  loud.stop();
  session->stop();
  EXPECT_TRUE(session->quiet());
  EXPECT_FALSE(loud.quiet());
  EXPECT_EQ(out, "1\n");
  EXPECT_EQ(second, std::string(kHeading) +
                        "  0      1                           :BEGIN         2\n"
                        "\n");
}

// REQ: DFUNCS-06
TEST_F(DtraceTest, TokensLastForOneFiring) {
  EXPECT_EQ(run("BEGIN {printf(\"%s\", strtok(\"a,b,c\", \",\"));} BEGIN {printf(\"%s\", "
                "strtok(NULL, \",\"));} END {this->t = strtok(NULL, \",\"); printf(\"%d\", "
                "this->t == NULL);}"),
            "ab1\n");
  // The text may lie in scratch that ends with its clause; a fault between two clauses is another
  // probe's firing.
  EXPECT_EQ(run("BEGIN {this->t = strtok(strjoin(\"a,\", \"b\"), \",\");} BEGIN {trace(1);} BEGIN "
                "{trace(*(int *)0);} BEGIN {trace(strtok(NULL, \",\"));} ERROR {strtok(\"x,y\", "
                "\",\");}"),
            "1b\n");
  EXPECT_EQ(run("dtmalloc::a_type:malloc /strtok(\"a,b\", \",\") != NULL/ "
                "{trace(strtok(NULL, \",\"));} dtmalloc::a_type:malloc {this->t = "
                "strtok(NULL, \",\"); trace(this->t == NULL);}",
                [this] {
                  pair(100, type);
                  pair(100, type);
                }),
            "b1b1\n");
}

// REQ: DFUNCS-04
TEST_F(DtraceTest, CopyoutIsDestructive) {
  open();
  EXPECT_EQ(start("BEGIN {copyout(alloca(1), 5, 1);}"),
            "could not enable tracing: Destructive actions not allowed");
  open();
  EXPECT_EQ(start("BEGIN /strlen(\"a\") == 1/ {copyoutstr(stringof \"a\", 5, 1);}"),
            "could not enable tracing: Destructive actions not allowed");
  open();
  EXPECT_TRUE(session->set_option("destructive"));
  EXPECT_EQ(start("BEGIN {copyout(alloca(1), 5, 1);}"), "");
}

}  // namespace
}  // namespace dtmalloc::dtrace
