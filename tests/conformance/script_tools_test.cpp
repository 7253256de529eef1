// SPDX-License-Identifier: BSD-2-Clause
// What is there for scripts beyond dtrace(1): check, test, clauses that never ran (sim/README.md).
#include <gtest/gtest.h>

#include <string>

#include "support/command.hpp"

namespace {

using dtmalloc::support::CommandLine;
using dtmalloc::support::Ran;

class ScriptTools : public CommandLine {
 protected:
  Ran check(const std::string& program, const std::string& words = "") {
    return run("cat >s.d <<'D'\n" + program + "\nD\ndtmalloc check s.d " + words);
  }
};

// REQ: DCMD-30
TEST_F(ScriptTools, CheckRunsNothing) {
  const Ran clean = check("BEGIN {printf(\"not printed\"); exit(3)}");
  EXPECT_EQ(clean.status, 0);
  EXPECT_EQ(clean.out + clean.err, "");
  const Ran refused = check("BEGIN {trace(nope)}");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("failed to resolve nope"), std::string::npos);
  EXPECT_EQ(run("dtmalloc check nosuch.d").status, 1);
  EXPECT_EQ(run("dtmalloc check").status, 2);
  const Ran warned = check("dtmalloc::temp:malloc {trace(arg3)}");
  EXPECT_EQ(warned.status, 0);
  EXPECT_NE(warned.out, "");
  EXPECT_EQ(check("dtmalloc::temp:malloc {trace(arg3)}", "--strict").status, 5);
  EXPECT_EQ(check("BEGIN {}", "--strict").status, 0);
  EXPECT_EQ(check("BEGIN {trace($1)}").status, 0);  // what its user gives is not known yet
}

// REQ: DCMD-31
TEST_F(ScriptTools, WarningsHaveAPlaceAndAnAdvice) {
  EXPECT_EQ(
      check("dtmalloc::temp:malloc\n/args[3] > 0/\n{\n\t@ = quantize(args[3]);\n}").out,
      "s.d:2:2: warning: args[3] is what the zone gave, the size of its class or whole pages, "
      "not what was asked for\n"
      "  /args[3] > 0/\n"
      "   ^~~~~~~\n"
      "  instead: arg0 of fbt::malloc:entry for the request\n");
  const struct {
    const char* program;
    const char* what;
  } cases[] = {
      {"dtmalloc::temp:malloc {@ = count()}", "a small request that fails fires too, with size 0"},
      {"dtmalloc::temp:free {trace(arg4)}", "args[4] of free is always 0"},
      {"dtmalloc::temp:malloc {trace(arg4)}", "args[4] is -1"},
      {"dtmalloc::temp:free {trace(args[2]->mts_numfrees)}",
       "args[2] are the statistics of the CPU"},
      {"dtmalloc::temp:free {trace(arg7)}", "dtmalloc::temp:free passes 5 arguments"},
      {"dtmalloc::temp:free {@[stringof(args[0])] = count()}", "the structure's own bytes"},
      {"#pragma D option bufsize=256\nBEGIN {trace(execname)}",
       "a buffer of 256 bytes is too small"},
      {"#pragma D option bufsize=1k\nBEGIN {trace(execname)}", "a buffer of 1024 bytes holds 3"},
      {"BEGIN {system(\"true\")}", "system() is destructive"},
  };
  for (const auto& c : cases) {
    const Ran ran = check(c.program);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(c.what), std::string::npos) << c.program << ": " << ran.out << ran.err;
    EXPECT_NE(ran.out.find("\n  instead: "), std::string::npos) << ran.out;
  }
  EXPECT_EQ(check("#pragma D option destructive\nBEGIN {system(\"true\")}").out, "");
  const std::string workload =
      "cat >w.wl <<'W'\ntype M_A \"a b\"\ntype M_B \"a_b\"\na = malloc 1 M_A M_WAITOK\ntype M_C "
      "\"late\"\nW\n";
  const Ran collision =
      run(workload + "echo 'dtmalloc::a_b:free {}' >s.d; dtmalloc check s.d w.wl");
  EXPECT_NE(
      collision.out.find("s.d:1:1: warning: types 'a_b' and 'a b' share dtmalloc::a_b:malloc"),
      std::string::npos)
      << collision.out << collision.err;
  const Ran late = run(workload + "echo 'dtmalloc:::free {}' >s.d; dtmalloc check s.d w.wl");
  EXPECT_NE(late.out.find("line 4 registers \"late\" later than tracing starts"), std::string::npos)
      << late.out;
}

// REQ: DCMD-32
TEST_F(ScriptTools, ScriptsCarryTheirTests) {
  const std::string files =
      "mkdir t; echo 'a = malloc 100 M_TEMP M_WAITOK' >t/w.wl\n"
      "cat >t/good.d <<'D'\n/*! run w.wl -q */\n/*! expect\n128\n*/\n"
      "dtmalloc::temp:malloc {trace(arg3)}\nD\n"
      "cat >t/bad.d <<'D'\n/*! run w.wl -q x */\n/*! status 3 */\n/*! expect\na\nc\n\n*/\n"
      "BEGIN {printf(\"a\\nb\\n%s\", $$1); exit(3)}\nD\n";
  const Ran good = run(files + "dtmalloc test t/good.d");
  EXPECT_EQ(good.out, "ok   t/good.d:1\n1 script, 1 run, 0 failed\n") << good.err;
  EXPECT_EQ(good.status, 0);
  const Ran both = run(files + "dtmalloc test t");
  EXPECT_EQ(both.status, 1);
  EXPECT_EQ(both.out,
            "FAIL t/bad.d:1: standard output differs\n--- expected\n+++ got\n@@ line 2 @@\n a\n-c\n"
            "-\n+b\n+x\nok   t/good.d:1\n2 scripts, 2 runs, 1 failed\n");
  const Ran updated = run(files + "dtmalloc test --update t/bad.d && dtmalloc test t/bad.d");
  EXPECT_EQ(updated.status, 0) << updated.out << updated.err;
  const Ran status = run("printf '/*! run - */\\nBEGIN {exit(2)}\\n' >s.d; dtmalloc test s.d");
  EXPECT_NE(status.out.find("FAIL s.d:1: status 2, expected 0\n"), std::string::npos) << status.out;
  EXPECT_EQ(run("echo 'BEGIN {}' >s.d; dtmalloc test s.d").status, 1);
  EXPECT_NE(run("echo '/*! expect */' >s.d; dtmalloc test s.d").err.find("s.d:1: expected /*! run"),
            std::string::npos);
  EXPECT_EQ(run("dtmalloc test").status, 2);
}

// REQ: DCMD-33
TEST_F(ScriptTools, ClausesThatNeverRanAreNamed) {
  const std::string start = "printf 'a = malloc 100 M_TEMP M_WAITOK' | dtmalloc run - ";
  EXPECT_EQ(
      run(start + "-n 'dtmalloc::temp:malloc /arg3 > 200/ {@ = count()}'").err,
      "dtrace: description 'dtmalloc::temp:malloc ' matched 1 probe\n"
      "dtmalloc: clause never ran: dtmalloc::temp:malloc; no firing made its predicate true\n");
  EXPECT_NE(run(start + "-n 'dtmalloc::temp:free {trace(1)}'")
                .err.find("dtmalloc: clause never ran: dtmalloc::temp:free\n"),
            std::string::npos);
  // It ran; it may have run; nobody asks.
  for (const char* words :
       {"-n 'dtmalloc::temp:malloc {trace(1)}'", "-n 'dtmalloc::temp:malloc {@ = count()}'",
        "-n 'dtmalloc::temp:malloc {x = 1}'", "-n 'dtmalloc::temp:free {x = 1}'",
        "-qn 'dtmalloc::temp:free {trace(1)}'",
        "-n 'dtmalloc::temp:free {@ = count()} dtmalloc::temp:malloc {@ = count()}'",
        "-n 'END {trace(1)} BEGIN'"}) {
    EXPECT_EQ(run(start + words).err.find("never ran"), std::string::npos) << words;
  }
}

// REQ: DCMD-28
TEST_F(ScriptTools, ProgramsWithoutIf) {
  const Ran ran = run("dtmalloc dtrace -den 'BEGIN {if (pid) {trace(1)} else {trace(2)}}'");
  EXPECT_EQ(ran.status, 0);
  EXPECT_NE(ran.out.find("this->%condition_1"), std::string::npos) << ran.out;
}

}  // namespace
