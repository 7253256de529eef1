// SPDX-License-Identifier: BSD-2-Clause
// Buffers, speculations, destructive actions and options in a whole session.
#include <gtest/gtest.h>

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kSecond = 1000000000;

struct Machine {
  Machine() {
    KernelConfig config;
    config.cpus = 2;
    config.fixed_cpus = true;
    config.mem = 1ull << 30;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    kernel->cpus().set_console([this](std::string_view text) { console += text; });
    type = &kernel->define_type("M_A", "aa");
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
    SessionSinks sinks;
    sinks.out = [this](std::string_view text) { out += text; };
    sinks.err = [this](std::string_view text) { err += text; };
    sinks.system = [this](const std::string& command) {
      out += "<" + command + ">";
      return shell_error;
    };
    sinks.freopen = [this](const std::string& path, int* error) -> TextSink {
      if (path == "bad") {
        *error = 13;
        return nullptr;
      }
      return [this, path](std::string_view text) { files[path] += text; };
    };
    sinks.ftruncate = [this] { out.clear(); };
    session = std::make_unique<Session>(*framework, sinks);
  }
  ~Machine() {
    session = nullptr;
    framework = nullptr;
    kernel->cpus().unbind();
  }
  void options(const std::vector<std::string>& list) {
    for (const std::string& option : list) EXPECT_TRUE(session->set_option(option)) << option;
  }
  // What refuses the program, or an empty string.
  std::string start(const std::string& program) {
    ProgramSource source;
    source.text = program;
    auto compiled = session->compile(source);
    if (!compiled) return compiled.error().tag;
    auto enabled = session->enable(*compiled);
    if (!enabled) return enabled.error().message;
    auto started = session->go();
    return started ? "" : started.error().message;
  }
  void alloc(std::size_t size = 100) { kernel->free(kernel->malloc(size, type, M_WAITOK), type); }
  void pass(std::uint64_t ns) { kernel->cpus().clock().advance(ns); }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  std::unique_ptr<Session> session;
  malloc_type* type = nullptr;
  std::string out, err, console;
  std::map<std::string, std::string> files;
  int shell_error = 0;
};

struct Outcome {
  std::string out, err;
};
Outcome run(const std::string& program, const std::vector<std::string>& options = {},
            const std::function<void(Machine&)>& work = {}) {
  Machine machine;
  machine.options({"quiet"});
  machine.options(options);
  EXPECT_EQ(machine.start(program), "") << program;
  if (work) work(machine);
  machine.session->stop();
  return {machine.out, machine.err};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// REQ: DBUF-01
TEST(Buffers, SwitchDropsWhatDoesNotFitAndSaysHowMuch) {
  const Outcome outcome = run("dtmalloc::aa:malloc { printf(\"%d\\n\", arg3); }",
                              {"bufsize=4k", "switchrate=1000sec"}, [](Machine& machine) {
                                for (int i = 0; i < 1000; ++i) machine.alloc(64);
                              });
  const std::size_t printed = count(outcome.out, "64\n");
  // A record is a header of 12 bytes and the argument at 16: 24 bytes.
  EXPECT_EQ(printed, 4096u / 24);
  EXPECT_EQ(outcome.err, "dtrace: " + std::to_string(1000 - printed) + " drops on CPU 0\n");
}

// REQ: DBUF-02, DBUF-08
TEST(Buffers, FillStopsWhenAnyCpuIsFull) {
  Machine machine;
  machine.options({"quiet", "bufpolicy=fill", "bufsize=64", "switchrate=10ms"});
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc { printf(\"%d\", arg3 / 16); }"), "");
  machine.alloc(16);
  machine.alloc(32);
  machine.pass(kSecond + 1);
  EXPECT_FALSE(machine.session->done());
  EXPECT_EQ(machine.out, "");  // nothing before the end
  for (int i = 0; i < 10; ++i) machine.alloc(48);
  EXPECT_FALSE(machine.session->done());
  machine.pass(kSecond);
  EXPECT_TRUE(machine.session->done());
  EXPECT_EQ(machine.out, "12\n");
  EXPECT_EQ(machine.err,
            "dtmalloc: the buffer of CPU 0 is full (bufpolicy=fill): nothing more was recorded "
            "there, and no drops are counted\n");
}

// REQ: DBUF-43
TEST(Buffers, AFullBufferOfFillIsTold) {
  const auto notes = [](int first, int second) {
    Machine machine;
    machine.options({"quiet", "bufpolicy=fill", "bufsize=64"});
    EXPECT_EQ(machine.start("dtmalloc::aa:malloc { printf(\"%d\", arg3); }"), "");
    for (int i = 0; i < first; ++i) machine.alloc();
    machine.kernel->cpus().bind(1);
    for (int i = 0; i < second; ++i) machine.alloc();
    machine.session->stop();
    return machine.err;
  };
  EXPECT_EQ(notes(2, 2), "");  // they fit
  EXPECT_EQ(notes(2, 3).find("dtmalloc: the buffer of CPU 1 is full (bufpolicy=fill): "), 0u);
  EXPECT_EQ(notes(3, 3).find("dtmalloc: the buffers of CPUs 0, 1 are full (bufpolicy=fill): "), 0u);
}

// REQ: DBUF-03
TEST(Buffers, FillKeepsRoomForEnd) {
  const std::vector<std::string> fill = {"bufpolicy=fill", "bufsize=64"};
  const std::string end = "END { printf(\"end%d\", arg0 * 0); } ";
  // END's record: 12 bytes of header, the value at 16; with its alignment 32 of 64 bytes.
  const Outcome outcome =
      run(end + "dtmalloc::aa:malloc { printf(\"%d\", arg3); }", fill, [](Machine& machine) {
        for (int i = 0; i < 10; ++i) machine.alloc(16);
      });
  EXPECT_EQ(outcome.out, "16end0\n");
  for (const char* policy : {"bufpolicy=fill", "bufpolicy=ring"}) {
    Machine machine;
    machine.options({"quiet", policy, "bufsize=56"});
    EXPECT_EQ(machine.start(end + end),
              "could not enable tracing: END enablings exceed size of principal buffer");
  }
}

// REQ: DBUF-04
TEST(Buffers, RingKeepsTheNewestInOrder) {
  for (int records = 0; records < 40; ++records) {
    for (const char* size : {"bufsize=104", "bufsize=128", "bufsize=136"}) {
      const Outcome outcome = run("dtmalloc::aa:malloc { printf(\"%d \", ++x); }",
                                  {"bufpolicy=ring", size}, [&](Machine& machine) {
                                    for (int i = 0; i < records; ++i) machine.alloc();
                                    machine.pass(3 * kSecond);
                                    EXPECT_EQ(machine.out, "");
                                  });
      // 20 bytes each: as many as fit, of which the first may have made room for the last.
      std::string expected;
      const int most = std::stoi(std::string(size).substr(8)) / 24;
      const std::size_t kept = count(outcome.out, " ");
      EXPECT_GE(static_cast<int>(kept), std::min(records, most - 1));
      EXPECT_LE(static_cast<int>(kept), std::min(records, most));
      for (int i = records - static_cast<int>(kept) + 1; i <= records; ++i) {
        expected += std::to_string(i) + " ";
      }
      EXPECT_EQ(outcome.out, expected + "\n");
      EXPECT_EQ(outcome.err, "");
    }
  }
}

// REQ: DBUF-04
TEST(Buffers, RingTakesRecordsOfDifferentSizes) {
  const Outcome outcome =
      run("dtmalloc::aa:malloc /arg3 == 16/ { printf(\"%d \", ++x); } "
          "dtmalloc::aa:malloc /arg3 == 32/ { printf(\"%d%s \", ++x, \"text\"); } "
          "dtmalloc::aa:malloc /arg3 == 64/ { @[\"a rather long key\", x] = count(); }",
          {"bufpolicy=ring", "bufsize=1k", "strsize=64"}, [&](Machine& machine) {
            for (int i = 0; i < 500; ++i) machine.alloc(i % 7 == 0 ? 64 : i % 3 == 0 ? 32 : 16);
          });
  int last = 0;
  const std::string records = outcome.out.substr(0, outcome.out.find('\n'));
  for (std::size_t at = 0; at < records.size(); at = records.find(' ', at) + 1) {
    const int number = std::stoi(records.substr(at));
    if (last != 0) {
      EXPECT_EQ(number, last + 1);
    }
    last = number;
  }
  EXPECT_EQ(last, 428);
}

// REQ: DBUF-05
TEST(Buffers, ScratchOfFillAndRingIsABufferOfItsOwn) {
  const std::string program =
      "BEGIN { printf(\"%d\", strlen(strjoin(\"ab\", \"cd\"))); } "
      "dtmalloc::aa:malloc { printf(\"%d\", strlen(strjoin(\"ab\", \"cd\"))); }";
  const auto three = [](Machine& machine) {
    for (int i = 0; i < 3; ++i) machine.alloc();
  };
  EXPECT_EQ(run(program, {"bufpolicy=ring", "bufsize=320"}, three).out, "4444\n");
  EXPECT_EQ(run(program, {"bufpolicy=fill", "bufsize=320"}, three).out, "4444\n");
  const Outcome switched = run(program, {"bufsize=320", "switchrate=100sec"}, three);
  EXPECT_EQ(switched.out, "444\n");  // the first pass is at once
  EXPECT_EQ(count(switched.err, "out of scratch space in action #1"), 1u) << switched.err;
}

// REQ: DBUF-06, DBUF-35
TEST(Buffers, ManualResizeFails) {
  Machine machine;
  machine.options({"bufsize=100000t", "bufresize=manual"});
  EXPECT_EQ(machine.start("BEGIN {}"), "could not enable tracing: Cannot allocate memory");
  Machine lowered;
  lowered.options({"quiet", "specsize=100000t"});
  EXPECT_EQ(lowered.start("BEGIN { speculate(speculation()); }"), "");
  EXPECT_EQ(lowered.err.rfind("dtrace: speculation size lowered to ", 0), 0u) << lowered.err;
}

// REQ: DBUF-07
TEST(Buffers, OneCpuAlone) {
  const Outcome outcome =
      run("dtmalloc::aa:malloc { printf(\"%d\", cpu); } BEGIN { trace(cpu); } "
          "END { trace(cpu); }",
          {"cpu=1"}, [](Machine& machine) {
            machine.alloc();
            machine.kernel->cpus().move_to(1);
            machine.alloc();
          });
  EXPECT_EQ(outcome.out, "111\n");
  EXPECT_EQ(outcome.err, "");
}

// REQ: DBUF-09
TEST(Buffers, DropTexts) {
  const Outcome errors =
      run("BEGIN, dtmalloc::aa:malloc { x = *(int *)0; } ERROR { y = *(int *)0; }", {"droptags"},
          [](Machine& machine) {
            machine.pass(kSecond + 1);
            machine.alloc();
          });
  EXPECT_EQ(count(errors.err, "dtrace: [DTRACEDROP_DBLERROR] 1 error in ERROR probe enabling\n"),
            2u)
      << errors.err;
  const Outcome unavailable =
      run("BEGIN { x = speculation(); y = speculation(); "
          "z = speculation(); }",
          {"droptags"});
  EXPECT_EQ(unavailable.err,
            "dtrace: [DTRACEDROP_SPECUNAVAIL] 2 failed speculations (no speculative buffer "
            "available)\n");
  const Outcome busy = run("BEGIN { x = speculation(); discard(x); y = speculation(); }", {});
  EXPECT_EQ(busy.err, "dtrace: 1 failed speculation (available buffer(s) still busy)\n");
}

// REQ: DBUF-10, DBUF-11
TEST(Speculation, CommittedAndDiscarded) {
  EXPECT_EQ(run("BEGIN { i = speculation(); } BEGIN { speculate(i); printf(\"spec\"); } "
                "BEGIN { commit(i); } BEGIN { i = speculation(); } "
                "BEGIN { speculate(i); printf(\"lost\"); } BEGIN { discard(i); exit(0); }",
                {"nspec=2"})
                .out,
            "spec\n");
  EXPECT_EQ(
      run("BEGIN { printf(\"%d%d%d\", speculation(), speculation(), speculation()); }", {"nspec=2"})
          .out,
      "120\n");
  EXPECT_EQ(run("BEGIN { i = speculation(); } BEGIN { speculate(i); printf(\"never\"); }").out,
            "\n");
}

// REQ: DBUF-12
TEST(Speculation, WhatCannotBeSpeculatedDoesNotRun) {
  EXPECT_EQ(run("BEGIN { x = 1; } BEGIN { speculate(0); x = 2; } BEGIN { speculate(7); x = 3; } "
                "BEGIN { speculate(1); x = 4; } BEGIN { speculate(-1); x = 5; } "
                "BEGIN { trace(x); }",
                {})
                .out,
            "1\n");
  EXPECT_EQ(run("BEGIN { i = speculation(); discard(i); x = 1; } BEGIN { speculate(i); x = 2; } "
                "BEGIN { trace(x); }",
                {})
                .out,
            "1\n");
}

// REQ: DBUF-13, DBUF-31
TEST(Speculation, IdsThatAreTooLargeAreIllegal) {
  const Outcome outcome =
      run("BEGIN { commit(0); discard(0); discard(1); } BEGIN { commit(1); } BEGIN { trace(1); } "
          "BEGIN { x = 1; commit(2); } BEGIN { discard(-1); } ERROR { printf(\"[%d %d]\", arg2, "
          "arg4); }");
  EXPECT_EQ(outcome.out, "1[2 3][1 3]\n");
  EXPECT_EQ(outcome.err,
            "dtrace: error on enabled probe ID 4 (ID 1: dtrace:::BEGIN): illegal operation in "
            "action #2\n"
            "dtrace: error on enabled probe ID 5 (ID 1: dtrace:::BEGIN): illegal operation in "
            "action #1\n");
}

// REQ: DBUF-14, DBUF-39
TEST(Speculation, WhenItCanBeTakenAgain) {
  // Used on one CPU.
  EXPECT_EQ(run("BEGIN { i = speculation(); } BEGIN { speculate(i); printf(\"a\"); } "
                "BEGIN { commit(i); } BEGIN { trace(speculation()); }")
                .out,
            "a1\n");
  EXPECT_EQ(run("BEGIN { i = speculation(); } BEGIN { speculate(i); printf(\"a\"); } "
                "BEGIN { discard(i); } BEGIN { trace(speculation()); }")
                .out,
            "1\n");
  EXPECT_EQ(run("BEGIN { i = speculation(); commit(i); } BEGIN { trace(speculation()); }").out,
            "1\n");
  // Never used.
  const std::string program =
      "BEGIN { i = speculation(); discard(i); } dtmalloc::aa:malloc { trace(speculation()); }";
  const auto at = [&](std::uint64_t ns, const std::vector<std::string>& options) {
    return run(program, options,
               [ns](Machine& machine) {
                 machine.pass(ns);
                 machine.alloc();
               })
        .out;
  };
  EXPECT_EQ(at(1000000000 / 101 - 1000, {}), "0\n");
  EXPECT_EQ(at(1000000000 / 101, {}), "1\n");
  EXPECT_EQ(at(4 * kSecond, {"cleanrate=5sec"}), "0\n");
  EXPECT_EQ(at(5 * kSecond, {"cleanrate=5sec"}), "1\n");
}

// REQ: DBUF-39
TEST(Speculation, TheClockStopsForNoCleanerWithoutWork) {
  Machine machine;
  machine.options({"quiet", "statusrate=10sec", "switchrate=10sec", "aggrate=10sec"});
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc { discard(speculation()); }"), "");
  const std::uint64_t now = machine.kernel->cpus().clock().now();
  EXPECT_GE(machine.kernel->cpus().clock().next_due(), now + 9 * kSecond);
  machine.alloc();
  EXPECT_LE(machine.kernel->cpus().clock().next_due(), now + kSecond / 100);
  machine.pass(kSecond);
  EXPECT_GE(machine.kernel->cpus().clock().next_due(), now + 9 * kSecond);
}

// REQ: DBUF-15
TEST(Speculation, OtherCpusPartsFollow) {
  Machine machine;
  machine.options({"quiet"});
  ASSERT_EQ(machine.start("BEGIN { i = speculation(); } "
                          "dtmalloc::aa:malloc { speculate(i); printf(\"s%d \", cpu); } "
                          "dtmalloc::aa:malloc /arg3 == 64/ { commit(i); } "
                          "dtmalloc::aa:malloc { printf(\"m%d \", cpu); }"),
            "");
  machine.alloc(32);
  machine.pass(10);
  machine.kernel->cpus().move_to(1);
  machine.alloc(32);
  machine.pass(10);
  machine.kernel->cpus().move_to(0);
  machine.alloc(64);
  machine.pass(10);
  machine.alloc(32);
  machine.pass(kSecond);
  EXPECT_EQ(machine.out, "m0 m1 s0 s0 m0 m0 s1 ");
  machine.session->stop();
}

// REQ: DBUF-16
TEST(Speculation, ItsOwnBufferMayBeFull) {
  const std::string program =
      "BEGIN { i = speculation(); } dtmalloc::aa:malloc { speculate(i); printf(\"%d \", ++x); } ";
  const auto fifty = [](Machine& machine) {
    for (int i = 0; i < 50; ++i) machine.alloc();
  };
  const Outcome committed = run(program + "END { commit(i); }", {"specsize=96", "droptags"}, fifty);
  EXPECT_EQ(committed.out, "1 2 3 4 \n");
  EXPECT_EQ(committed.err, "dtrace: [DTRACEDROP_SPEC] 46 speculative drops\n");
  const Outcome discarded = run(program + "END { discard(i); }", {"specsize=96"}, fifty);
  EXPECT_EQ(discarded.out, "\n");
  EXPECT_EQ(discarded.err, "");
  Machine machine;
  machine.options({"specsize=7"});
  EXPECT_EQ(machine.start(program), "could not enable tracing: Enabling exceeds size of buffer");
}

// REQ: DBUF-17
TEST(Speculation, WhatThePrincipalBufferCannotTakeIsADrop) {
  const Outcome outcome =
      run("BEGIN { i = speculation(); } dtmalloc::aa:malloc { speculate(i); printf(\"%d \", arg3); "
          "} END { commit(i); }",
          {"bufsize=128"}, [](Machine& machine) {
            for (int i = 0; i < 50; ++i) machine.alloc();
          });
  EXPECT_EQ(outcome.out, "\n");
  EXPECT_EQ(outcome.err, "dtrace: 1 drop on CPU 0\n");
}

// REQ: DBUF-18
TEST(Speculation, OrderOfActions) {
  struct Row {
    const char* statements;
    const char* tag;
  };
  for (const Row& row : {
           Row{"commit(1); commit(1);", "D_COMM_COMM"},
           Row{"trace(1); commit(1);", "D_COMM_DREC"},
           Row{"@ = count(); commit(1);", "D_COMM_DREC"},
           Row{"speculate(1); speculate(1);", "D_SPEC_SPEC"},
           Row{"commit(1); speculate(1);", "D_SPEC_COMM"},
           Row{"trace(1); speculate(1);", "D_SPEC_DREC"},
           Row{"printa(@a); speculate(1);", "D_SPEC_DREC"},
           Row{"commit(1); @ = count();", "D_AGG_COMM"},
           Row{"speculate(1); @ = count();", "D_AGG_SPEC"},
           Row{"speculate(1); panic();", "D_ACT_SPEC"},
           Row{"speculate(1); system(\"a\");", "D_ACT_SPEC"},
           Row{"speculate(1); exit(0);", "D_EXIT_SPEC"},
           Row{"commit(1); trace(1);", "D_DREC_COMM"},
           Row{"commit(1); exit(0);", "D_DREC_COMM"},
           Row{"speculate(1); trace(1); commit(1); trace(2);", "D_DREC_COMM"},
           Row{"x = 1; speculate(1); x = 2; trace(1); printa(@a); discard(2); x = 3;", ""},
           Row{"x = 1; commit(1); x = 2; discard(1); system(\"a\"); stop();", ""},
           Row{"trace(1); discard(1); trace(2); discard(1); exit(0);", ""},
           Row{"speculate(1); trace(1); commit(2);", ""},
           Row{"stop(); system(\"a\"); speculate(1);", ""},
           Row{"discard(1); speculate(1);", ""},
       }) {
    Machine machine;
    machine.options({"quiet", "destructive", "nspec=2"});
    EXPECT_EQ(
        machine.start("BEGIN { @a = count(); } BEGIN { " + std::string(row.statements) + " }"),
        row.tag)
        << row.statements;
  }
}

// REQ: DBUF-19
TEST(Speculation, DefaultLines) {
  Machine machine;
  ASSERT_EQ(machine.start("BEGIN { i = speculation(); } BEGIN { speculate(i); } "
                          "BEGIN { commit(i); } BEGIN { discard(i); } BEGIN { speculate(i); }"),
            "");
  machine.session->stop();
  EXPECT_EQ(machine.out,
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN \n"
            "\n");
}

// REQ: DBUF-20
TEST(Destructive, NeedsTheOption) {
  for (const char* action : {"system(\"x\")", "freopen(\"x\")", "raise(9)", "stop()", "chill(1)",
                             "panic()", "breakpoint()"}) {
    Machine machine;
    machine.options({"quiet"});
    EXPECT_EQ(machine.start("END { " + std::string(action) + "; }"),
              "could not enable tracing: Destructive actions not allowed")
        << action;
  }
  EXPECT_EQ(run("BEGIN { ftruncate(); setopt(\"quiet\"); }").err, "");
}

// REQ: DBUF-21
TEST(Destructive, Panic) {
  Machine machine;
  machine.options({"quiet", "destructive"});
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc { trace(1); panic(); trace(2); }"), "");
  std::string text;
  try {
    machine.alloc();
  } catch (const KernelPanic& panic) {
    text = panic.what();
  }
  EXPECT_EQ(text.rfind("dtrace: panic action at probe dtmalloc::aa:malloc (ecb 0xfffffe", 0), 0u)
      << text;
  EXPECT_TRUE(machine.kernel->cpus().panicked());
}

// REQ: DBUF-22
TEST(Destructive, BreakpointAndSignals) {
  Machine machine;
  machine.options({"quiet", "destructive"});
  ASSERT_EQ(machine.start("BEGIN { breakpoint(); stop(); raise(9); raise(128); trace(1); }"), "");
  machine.session->stop();
  EXPECT_EQ(machine.out, "1\n");
  EXPECT_EQ(machine.console, "KDB: enter: breakpoint action\n");
  Machine bad;
  bad.options({"quiet", "destructive"});
  ASSERT_EQ(bad.start("dtmalloc::aa:malloc { raise(129); }"), "");
  EXPECT_THROW(bad.alloc(), KernelPanic);
  EXPECT_EQ(bad.kernel->cpus().panic_message(), "tdsendsignal(): invalid signal 129");
}

// REQ: DBUF-23, DBUF-40
TEST(Destructive, Chill) {
  const Outcome outcome =
      run("BEGIN { t = timestamp; chill(300000000); printf(\"%d \", timestamp - t); } "
          "BEGIN { t = timestamp; chill(200000000); printf(\"%d \", timestamp - t); } "
          "BEGIN { chill(1); } "
          "dtmalloc::aa:malloc { chill(500000000); trace(1); } "
          "dtmalloc::aa:free { chill(500000001); }",
          {"destructive"}, [](Machine& machine) {
            machine.pass(kSecond);
            machine.alloc();
          });
  EXPECT_EQ(outcome.out, "300000000 200000000 1\n");
  EXPECT_EQ(count(outcome.err, "illegal operation in action #1\n"), 2u) << outcome.err;
}

// REQ: DBUF-24, DBUF-29
TEST(Control, System) {
  EXPECT_EQ(run("BEGIN { printf(\"a\"); system(\"echo %d %s\", 42, \"x\"); printf(\"b\"); } "
                "END { system(\"done\"); }",
                {"destructive"})
                .out,
            "a<echo 42 x>b<done>\n");
  EXPECT_EQ(
      run("BEGIN { system(\"0123456789%d\", 123456789); }", {"destructive", "strsize=16"}).out,
      "<012345678912345>\n");
  Machine machine;
  machine.options({"quiet", "destructive"});
  machine.shell_error = 12;
  ASSERT_EQ(machine.start("BEGIN { system(\"x\"); trace(1); }"), "");
  EXPECT_TRUE(machine.session->done());
  EXPECT_EQ(machine.err, "dtrace: processing aborted: Cannot allocate memory\n");
  EXPECT_EQ(machine.session->exit_status(), 1);
}

// REQ: DBUF-25
TEST(Control, Freopen) {
  Machine machine;
  machine.options({"destructive"});
  ASSERT_EQ(machine.start("BEGIN { trace(1); freopen(\"f%d\", 7); trace(2); } BEGIN { trace(3); } "
                          "BEGIN { freopen(\"bad\"); trace(4); } "
                          "BEGIN { freopen(\"\"); trace(5); } END { freopen(\"g\"); @ = sum(6); }"),
            "");
  machine.session->stop();
  EXPECT_EQ(machine.out,
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN         1\n"
            "  0      1                           :BEGIN \n"
            "  0      1                           :BEGIN \n"
            "  0      1                           :BEGIN         5\n"
            "  0      2                             :END \n"
            "\n");
  EXPECT_EQ(machine.files["f7"], "        2        3        4");
  EXPECT_EQ(machine.files["g"], "                6\n");
  EXPECT_NE(machine.err.find("dtrace: error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): couldn't "
                             "freopen() \"bad\": Permission denied\n"),
            std::string::npos)
      << machine.err;
}

// REQ: DBUF-26
TEST(Control, FreopenOfADot) {
  Machine machine;
  machine.options({"destructive"});
  EXPECT_EQ(machine.start("BEGIN { freopen(\".\"); }"), "D_FREOPEN_INVALID");
  EXPECT_EQ(machine.start("BEGIN { system(\"\"); }"), "D_PRINTF_FMT_EMPTY");
}

// REQ: DBUF-27
TEST(Control, Ftruncate) {
  EXPECT_EQ(
      run("BEGIN { printf(\"lost\"); } BEGIN { printf(\"too\"); ftruncate(); trace(1); }").out,
      "1\n");
}

// REQ: DBUF-28, DBUF-08
TEST(Control, Setopt) {
  Machine machine;
  machine.options({"quiet"});
  ASSERT_EQ(machine.start("BEGIN { setopt(\"quiet\", \"no\"); trace(1); } "
                          "BEGIN { setopt(\"nspec\", \"4\"); trace(2); } "
                          "BEGIN { setopt(\"nosuch\"); setopt(\"switchrate\", \"10ms\"); } "
                          "dtmalloc::aa:malloc { setopt(\"quiet\"); trace(3); }"),
            "");
  EXPECT_EQ(machine.err,
            "dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): couldn't set option "
            "\"nspec\" to \"4\": Operation illegal when tracing is active\n\n"
            "dtrace: error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): couldn't set option "
            "\"nosuch\" to \"1\": Invalid option name\n\n");
  machine.alloc();
  machine.pass(11000000);
  EXPECT_NE(machine.out.find("3"), std::string::npos);
  machine.session->stop();
}

// REQ: DBUF-30
TEST(Control, WhatTheHostDoesNotOffer) {
  for (const char* action : {"system(\"x\")", "freopen(\"x\")", "ftruncate()"}) {
    Machine machine;
    Session session(*machine.framework, {.out = [](std::string_view) {}, .err = {}});
    ProgramSource source;
    source.text = "BEGIN { " + std::string(action) + "; }";
    EXPECT_TRUE(session.set_option("destructive"));
    auto program = session.compile(source);
    ASSERT_TRUE(program);
    EXPECT_TRUE(session.enable(*program));
    auto gone = session.go();
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().tag, "D_SIM_UNSUPPORTED");
  }
}

// REQ: DBUF-32
TEST(Errors, InTheOrderOfTheRecords) {
  Machine machine;
  machine.options({"quiet"});
  ASSERT_EQ(machine.start("BEGIN { printf(\"a\"); } BEGIN { x = *(int *)0; } "
                          "ERROR { printf(\"e\"); } BEGIN { exit(3); x = *(int *)8; } "
                          "BEGIN { printf(\"not\"); }"),
            "");
  machine.session->stop();
  EXPECT_EQ(machine.out, "aee\n");
  EXPECT_EQ(count(machine.err, "invalid address (0x0) in action #1"), 1u) << machine.err;
  EXPECT_EQ(count(machine.err, "invalid address (0x8) in action #2"), 1u) << machine.err;
  EXPECT_EQ(machine.session->exit_status(), 0);
}

// REQ: DBUF-33
TEST(Errors, NumbersOfActions) {
  const Outcome outcome =
      run("BEGIN { setopt(\"quiet\"); x = *(int *)0; } "
          "BEGIN { system(\"%d %d\", 1, 2); x = *(int *)0; } "
          "BEGIN { system(\"a\"); freopen(\"b\"); ftruncate(); stop(); x = *(int *)0; }",
          {"destructive"});
  EXPECT_EQ(count(outcome.err, "in action #3"), 2u) << outcome.err;
  EXPECT_EQ(count(outcome.err, "in action #5"), 1u) << outcome.err;
}

// REQ: DBUF-34
TEST(Options, RatesOutOfRange) {
  const auto said = [](const std::string& option) { return run("BEGIN {}", {option}).err; };
  EXPECT_EQ(said("cleanrate=10000hz"), "dtrace: cleaning rate reduced to 5000 hz\n");
  EXPECT_EQ(said("cleanrate=2min"), "dtrace: cleaning rate increased to once every 60 seconds\n");
  EXPECT_EQ(said("statusrate=20sec"), "dtrace: status rate increased to once every 10 seconds\n");
  EXPECT_EQ(said("cleanrate=50hz"), "");
}

// REQ: DBUF-36
TEST(Options, AcceptedWithoutEffect) {
  Machine machine;
  machine.options({"core",
                   "debug",
                   "evaltime=exec",
                   "evaltime=main",
                   "kdefs",
                   "knodefs",
                   "late=static",
                   "lazyload",
                   "linkmode=kernel",
                   "linktype=dof",
                   "pgmax=4",
                   "pspec",
                   "strip",
                   "udefs",
                   "unodefs",
                   "stackframes=5",
                   "ustackframes=5",
                   "jstackframes=5",
                   "jstackstrsize=1k",
                   "bufpolicy=ring",
                   "cpu=0"});
  for (const char* bad : {"evaltime=never", "late", "linkmode=x", "linktype", "nspec=-1",
                          "specsize=x", "bufpolicy=other", "cleanrate=fast"}) {
    const auto refused = machine.session->set_option(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().message, "Invalid value for specified option") << bad;
  }
  EXPECT_FALSE(machine.session->set_option("aggpercpu"));
}

// REQ: DBUF-37
TEST(Activity, Deadman) {
  const std::string program = "dtmalloc::aa:malloc { trace(1); } END { trace(2); }";
  Machine machine;
  machine.options({"quiet"});
  ASSERT_EQ(machine.start(program), "");
  critical_enter();
  machine.pass(12 * kSecond);  // nothing that falls due runs
  Framework::probe_fire(machine.framework->match({"dtmalloc", "", "aa", "malloc"})[0], 0, 0, 0, 0,
                        0);
  critical_exit();
  machine.session->work();
  machine.pass(kSecond);
  EXPECT_TRUE(machine.session->done());
  machine.session->stop();
  EXPECT_EQ(machine.out, "");
  EXPECT_EQ(machine.err, "dtrace: processing aborted: Abort due to systemic unresponsiveness\n");
  EXPECT_EQ(machine.session->exit_status(), 1);
}

// REQ: DBUF-38
TEST(Activity, WhichExitCounts) {
  const auto status = [](const std::string& program) {
    Machine machine;
    machine.options({"quiet"});
    EXPECT_EQ(machine.start(program), "");
    machine.session->stop();
    return machine.session->exit_status();
  };
  EXPECT_EQ(status("BEGIN { exit(3); } BEGIN { exit(4); }"), 3);
  EXPECT_EQ(status("BEGIN { exit(3); exit(4); }"), 0);
  EXPECT_EQ(status("BEGIN { exit(3); } END { exit(4); exit(5); }"), 5);
}

// REQ: DBUF-41
TEST(Anonymous, IsClaimedWithWhatItRecorded) {
  std::string saved;
  {
    Machine machine;
    machine.options({"bufsize=16k", "strsize=32"});
    ProgramSource source;
    source.text =
        "BEGIN { trace($1); trace(execname); } dtmalloc::aa:malloc { trace($$2); "
        "@ = count(); } END { trace(execname); }";
    source.args = {"7", "a b\nc"};
    ASSERT_TRUE(machine.session->compile(source));
    saved = machine.session->anonymous_enabling();
  }
  Machine machine;
  const auto started = Session::start_anonymous(*machine.framework, saved);
  ASSERT_TRUE(started) << started.error().message;
  machine.alloc();
  machine.pass(60 * kSecond);
  EXPECT_EQ(machine.out, "");
  machine.options({"quiet", "grabanon"});
  const auto gone = machine.session->go();
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(machine.out, "7kernela b\nc");
  machine.alloc();
  machine.session->stop();
  EXPECT_EQ(machine.out, "7kernela b\nca b\ncdtrace\n                2\n");
  EXPECT_EQ(machine.err, "");
}

// REQ: DBUF-42
TEST(Anonymous, WhatCannotBeClaimed) {
  Machine machine;
  machine.options({"grabanon", "quiet"});
  EXPECT_EQ(machine.session->go().error().message,
            "could not enable tracing: No anonymous tracing state");
  Machine other;
  ProgramSource source;
  source.text = "BEGIN {}";
  ASSERT_TRUE(other.session->compile(source));
  ASSERT_TRUE(Session::start_anonymous(*other.framework, other.session->anonymous_enabling()));
  other.options({"grabanon", "quiet"});
  EXPECT_EQ(other.start("BEGIN {}"),
            "could not enable tracing: Can't claim anonymous state and enable probes");
  for (const char* damaged :
       {"", "x", "dtmalloc anonymous enabling 1\noption nosuch 1\n",
        "dtmalloc anonymous enabling 1\nprogram 0 3 0 0 99\n\nBEGIN {}\n",
        "dtmalloc anonymous enabling 1\nprogram 0 9 0 0 8\n\nBEGIN {}\n",
        "dtmalloc anonymous enabling 1\nprogram 0 3 99999999999 0 8\n\nBEGIN {}\n"}) {
    EXPECT_FALSE(Session::start_anonymous(*machine.framework, damaged)) << damaged;
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
