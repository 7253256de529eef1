// SPDX-License-Identifier: BSD-2-Clause
// Exit statuses and streams of the command (sim/README.md); its output is in tests/golden.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>

#include "support/command.hpp"

namespace {

using dtmalloc::support::CommandLine;
using dtmalloc::support::Ran;

// REQ: CLI-01
TEST_F(CommandLine, StatusSaysHowARunEnded) {
  const struct {
    const char* command;
    int status;
  } cases[] = {
      {"printf 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc run -", 0},
      {"printf 'a = mallok 1 M_TEMP M_WAITOK' | dtmalloc run -", 1},
      {"dtmalloc run /nonexistent", 1},
      {"printf '' | dtmalloc run - -n 'BEGIN{'", 1},
      {"printf '' | dtmalloc run - -n 'dtmalloc::nobody:malloc'", 1},
      {"printf '' | dtmalloc run - -s /nonexistent.d", 1},
      {"printf 'kernel release=15' | dtmalloc run -", 1},
      {"printf 'cpu 3' | dtmalloc run - --cpus 2", 1},
      {"dtmalloc", 2},
      {"dtmalloc nosuch", 2},
      {"dtmalloc run", 2},
      {"dtmalloc run x --nosuch", 2},
      {"printf 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc replay -", 0},
      {"printf 'a = mallok 1 M_TEMP M_WAITOK' | dtmalloc replay -", 1},
      {"printf 'a = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a' | dtmalloc replay -", 3},
      {"printf 'expect 0' | dtmalloc record - | dtmalloc replay -", 4},
      {"printf 'expect 0' | dtmalloc record - >/dev/null", 4},
      {"dtmalloc replay x -q", 2},
      {"dtmalloc run x --cpus 0", 2},
      {"dtmalloc import vmstat-x y", 2},
      {"dtmalloc --help", 0},
      {"dtmalloc run --help", 0},
      {"dtmalloc --version", 0},
      // A panic before a failed expect, an expect before exit(n), exit(n) before --strict.
      {"printf 'expect 0\na = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a' | dtmalloc run -", 3},
      {"printf 'expect 0' | dtmalloc run - -n 'BEGIN{exit(9)}'", 4},
      {"printf 'type M_A \"a\"\na = malloc 1 M_A M_WAITOK\nunload M_A' |"
       " dtmalloc run - --strict -n 'BEGIN{exit(9)}'",
       9},
      {"printf 'type M_A \"a\"\na = malloc 1 M_A M_WAITOK\nunload M_A' | dtmalloc run - --strict",
       5},
      {"printf '' | dtmalloc run - --strict", 0},
      {"printf '' | dtmalloc run - -n 'BEGIN{exit(256)}'", 0},
  };
  for (const auto& c : cases) EXPECT_EQ(run(c.command).status, c.status) << c.command;
}

// REQ: TRACE-10
TEST_F(CommandLine, ARecordIsWrittenWholeOrNotAtAll) {
  EXPECT_EQ(run("printf 'cpu 0\nnosleep { }\n' | dtmalloc record - -o t; ls t").status, 2);
  EXPECT_EQ(run("printf 'cpu 1\n' | dtmalloc record - -o t && cat t").out, "cpu 1\n");
  EXPECT_EQ(run("printf 'kernel cpus=2\nwait 1ms' | dtmalloc record - --seed 3 --tunable "
                "vm.kmem_zmax=4096")
                .out,
            "kernel cpus=2 seed=3 vm.kmem_zmax=4096\nwait 1ms\n");
  const Ran ran = run("yes 'cpu 1' | head -100000 | dtmalloc replay - --report vmstat-m");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err, "");
}

// REQ: CLI-02
TEST_F(CommandLine, ResultsAndMessagesGoDifferentWays) {
  const Ran ran =
      run("printf 'type M_A \"a\"\na = malloc 1 M_A M_WAITOK\nunload M_A' |"
          " dtmalloc run - -n 'dtmalloc::a:malloc{@=count()}'");
  EXPECT_EQ(ran.out, "\n                1\n");
  EXPECT_EQ(ran.err,
            "dtrace: description 'dtmalloc::a:malloc' matched 1 probe\n"
            "Warning: memory type a leaked memory on destroy (1 allocations, 16 bytes leaked).\n");
}

// REQ: CLI-03
TEST_F(CommandLine, PrintsTheTableUnlessSomethingElseIsAskedFor) {
  const std::string load = "printf 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc run - ";
  const std::string table =
      "            Type  Use Memory Req Size(s)\n            temp    1    16    1 16\n";
  EXPECT_EQ(run(load).out, table);
  EXPECT_EQ(run(load + "--report vmstat-m").out, table);
  EXPECT_EQ(run(load + "-q -n 'BEGIN{printf(\"x\\n\")}'").out, "x\n\n");
  // The D output comes first. Its consumer's open is a request of temp.
  EXPECT_EQ(run(load + "-q -n 'BEGIN{printf(\"x\\n\")}' --report vmstat-m").out,
            "x\n\n            Type  Use Memory Req Size(s)\n"
            "            temp    1    16    2 16,64\n");
}

// REQ: CLI-04
TEST_F(CommandLine, AFileAppearsWholeOrNotAtAll) {
  const Ran good = run("printf '' | dtmalloc run - -o out.txt; ls; cat out.txt");
  EXPECT_EQ(good.out, "out.txt\n            Type  Use Memory Req Size(s)\n");
  const Ran bad =
      run("rm -f out.txt; printf 'cpu 1000' | dtmalloc run - -o out.txt\n"
          "echo status $?; ls");
  EXPECT_EQ(bad.out, "status 1\n");
  // REQ: WL-26. What a run did before a mistake is a result.
  const Ran late =
      run("printf 'free a\na = malloc 1 M_TEMP M_WAITOK' | dtmalloc run - -o out.txt\n"
          "echo status $?; cat out.txt");
  EXPECT_EQ(late.out, "status 1\n            Type  Use Memory Req Size(s)\n");
  const Ran kept =
      run("echo old >out.txt; printf 'nonsense' >t; dtmalloc import vmstat-m t -o out.txt; cat "
          "out.txt");
  EXPECT_EQ(kept.out, "old\n");
}

// REQ: CLI-05
TEST_F(CommandLine, ProgramsCountInTheOrderOfTheCommandLine) {
  const Ran ran =
      run("printf '%s\\n' 'BEGIN{printf(\"2 %d\\n\", $1)}' >two.d\n"
          "printf '' | dtmalloc run - 7 -q -n 'BEGIN{printf(\"1 %d\\n\", $1)}' -s two.d"
          " -n 'BEGIN{printf(\"3 %d\\n\", $1)}'");
  EXPECT_EQ(ran.out, "1 7\n2 7\n3 7\n\n") << ran.err;
}

// REQ: CLI-06
TEST_F(CommandLine, ExitEndsTracingAndNotTheWorkload) {
  const Ran ran = run(
      "printf 'type M_A \"a\"\nrepeat 10 { x = malloc 1 M_A M_WAITOK\nwait 1s\n}\n"
      "expect requests(M_A) == 10' |"
      " dtmalloc run - -q -n 'dtmalloc::a:malloc /++n == 3/ {exit(6)} dtmalloc::a:malloc{@=count()}"
      " END{printf(\"end\\n\")}'");
  EXPECT_EQ(ran.status, 6) << ran.err;
  // The third firing is the one that exits: no clause after it sees it.
  EXPECT_EQ(ran.out, "end\n\n                2\n");
}

// REQ: CLI-07
TEST_F(CommandLine, TheFirstInterruptEndsTheRunAndTheSecondKills) {
  const std::string load =
      "printf 'type M_A \"a\"\nrepeat 1000000000000 { a = malloc 16 M_A M_WAITOK\nfree a\n}' "
      ">w.wl\n";
  const Ran ended = run(load +
                        "dtmalloc run w.wl -q -n 'END{printf(\"end\\n\")}' &\nsleep 0.5\n"
                        "kill -INT $!\nwait $!");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "\nend\n\n");
}

// REQ: CLI-12
TEST_F(CommandLine, AnInterruptKillsWhileProgramsAreCompiled) {
  const std::string slow =
      "printf '#!/bin/sh\nexec sleep 20 >/dev/null 2>&1' >slow; chmod +x slow; printf 'BEGIN {}' "
      ">c.d\n";
  for (const char* command : {"dtrace -s c.d", "check c.d", "run w.wl -s c.d"}) {
    const auto before = std::chrono::steady_clock::now();
    const Ran killed = run(slow + ">w.wl\ndtmalloc " + command + " -C -x cpppath=$PWD/slow &\n" +
                           "sleep 0.5\nkill -TERM $!\nwait $!");
    EXPECT_EQ(killed.status, 128 + SIGTERM) << command << killed.err;
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(15)) << command;
  }
}

// REQ: CLI-08
TEST_F(CommandLine, AClosedOrFullOutputIsAnError) {
  EXPECT_EQ(run("printf '' | dtmalloc run - >/dev/full").status, 1);
  EXPECT_EQ(run("(printf '' | dtmalloc run -; echo $? >../status) | true; cat ../status").err, "");
  EXPECT_EQ(run("printf '' | dtmalloc run - >&-").status, 1);
}

// REQ: CLI-09
TEST_F(CommandLine, NearNamesAreOffered) {
  EXPECT_NE(run("dtmalloc improt vmstat-m x").err.find("did you mean import?"), std::string::npos);
  EXPECT_NE(run("dtmalloc run x --reprot y").err.find("did you mean --report"), std::string::npos);
  EXPECT_NE(run("dtmalloc import vmstatm x").err.find("did you mean vmstat-m?"), std::string::npos);
}

// REQ: LEDGER-19
TEST_F(CommandLine, TheLedgerExplainsAPanic_AndFailsAStrictRun) {
  const std::string twice =
      "printf 'kernel invariants\na = malloc 1 M_TEMP M_WAITOK @one\nfree a @two\nfree a @three\n' "
      ">w.wl\ndtmalloc run w.wl ";
  EXPECT_EQ(run(twice).err.find("dtmalloc:"), std::string::npos);
  const Ran explained = run(twice + "--report findings");
  EXPECT_EQ(explained.status, 3);
  EXPECT_LT(explained.err.find("panic: Duplicate free of"), explained.err.find("dtmalloc: double"));
  EXPECT_NE(explained.err.find("dtmalloc:   first freed at two ("), std::string::npos);
  EXPECT_NE(explained.err.find("dtmalloc:   freed again at three ("), std::string::npos);
  const std::string wrong =
      "printf 'a = malloc 1 M_TEMP M_WAITOK\nfree a M_DEVBUF\n' >w.wl\ndtmalloc run w.wl ";
  EXPECT_EQ(run(wrong + "--strict").status, 0);
  EXPECT_EQ(run(wrong + "--ledger").status, 0);
  EXPECT_EQ(run(wrong + "--strict --ledger").status, 5);
  EXPECT_EQ(run(wrong + "--strict --report leaks").status, 5);
  EXPECT_EQ(run(wrong + "--strict --report types").status, 0);
}

// REQ: LEDGER-20
TEST_F(CommandLine, AReportTakesATypeByEitherName) {
  const std::string demo =
      "printf 'type M_DEMO \"demo it\"\na = malloc 1 M_DEMO M_WAITOK\n' >w.wl\ndtmalloc run w.wl ";
  const Ran by_name = run(demo + "--report 'peaks=demo it'");
  const Ran by_symbol = run(demo + "--report peaks=M_DEMO");
  EXPECT_EQ(by_name.status, 0);
  EXPECT_EQ(by_name.err, "");
  EXPECT_EQ(by_name.out, by_symbol.out);
  EXPECT_NE(by_symbol.err.find("the type M_DEMO is \"demo it\""), std::string::npos);
  const Ran typo = run(demo + "--report leaks=M_DEMMO");
  EXPECT_EQ(typo.status, 2);
  EXPECT_NE(typo.err.find("did you mean M_DEMO?"), std::string::npos);
}

// REQ: CLI-10
TEST_F(CommandLine, AProgramsStatusIsNoRefusal) {
  for (const int status : {1, 2, 7}) {
    const std::string n = std::to_string(status);
    const Ran ran =
        run("printf 'a = malloc 9 M_TEMP M_WAITOK' >w.wl; dtmalloc run w.wl -q -n "
            "'dtmalloc:::malloc {trace(\"seen\"); exit(" +
            n + ");}' -o out" + n);
    EXPECT_EQ(ran.status, status) << ran.err;
    EXPECT_EQ(run("cat out" + n).out, "seen\n");
  }
}

// REQ: CLI-11
TEST_F(CommandLine, AnOptionThatDoesNothingIsRefused) {
  for (const char* line : {"run - -q", "run - --json --xml", "run - -s -", "run - -o ''",
                           "list --seed 1", "import vmstat-z - --replay-history"}) {
    const Ran ran = run("printf '' | dtmalloc " + std::string(line));
    EXPECT_EQ(ran.status, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
  }
}

// REQ: LEDGER-22
TEST_F(CommandLine, ReportsSayWhatTheBoundsLeftOut) {
  const std::string full =
      "printf 'kernel ledger_blocks=1\nrepeat 3 as i { x[i] = malloc 9 M_TEMP M_WAITOK }\n' >w.wl\n"
      "dtmalloc run w.wl --report ";
  for (const char* report : {"leaks", "leaks=by-stack", "waste", "waste=temp", "findings"}) {
    const Ran ran = run(full + report);
    EXPECT_NE(ran.out.find("note: 2 blocks beyond the ledger's 1 have no record"), ran.out.npos)
        << report << "\n"
        << ran.out;
  }
}

// REQ: LEDGER-23
TEST_F(CommandLine, ANameThatNoReportKnowsIsRefused) {
  const std::string demo =
      "printf 'repeat 3 as i { x[i] = malloc 9 M_TEMP M_WAITOK }\n' >w.wl\ndtmalloc run w.wl "
      "--report ";
  const std::pair<const char*, const char*> rows[] = {
      {"history=x", "did you mean x[...]?"},
      {"'history=x[i]'", "expected numbers for x[...]"},
      {"'history=y[0]'", "did you mean x[...]?"},
      {"peaks=hello", "expected one of M_CACHE, cache"},
      {"leaks=by-stak", "did you mean by-stack?"},
  };
  for (const auto& [report, message] : rows) {
    const Ran ran = run(demo + report);
    EXPECT_EQ(ran.status, 2) << report;
    EXPECT_NE(ran.err.find(message), ran.err.npos) << report << "\n" << ran.err;
  }
  EXPECT_EQ(run(demo + "'history=x[7]'").out, "history of x[7]: the run never set it\n");
}

}  // namespace
