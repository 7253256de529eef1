// SPDX-License-Identifier: BSD-2-Clause
// What is there for scripts beyond dtrace(1): check, test, notes at the end of a run
// (sim/README.md).
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
  // The condition of a branch is a test of what stands under it, and of nothing else.
  const auto untested = [this](const std::string& program) {
    return check(program).out.find("fires too, with size 0") != std::string::npos;
  };
  for (const char* tested :
       {"if (arg3 > 0) {@ = quantize(arg3)}", "if (arg3 == 0) {n++} else {@ = quantize(arg3)}",
        "if (args[3]) {if (n) {@ = count()}}",
        "if (n) {m++} else if (arg3) {n++} else {@ = count()}"}) {
    EXPECT_FALSE(untested("int n, m; dtmalloc::temp:malloc {" + std::string(tested) + "}"))
        << tested;
  }
  for (const char* tested : {"if (n) {@ = quantize(arg3)}", "if (arg3) {n++} @ = count()",
                             "if (n) {if (arg3) {n++} else {n--} @ = count()}"}) {
    EXPECT_TRUE(untested("int n; dtmalloc::temp:malloc {" + std::string(tested) + "}")) << tested;
  }
  EXPECT_FALSE(untested("int n; dtmalloc::temp:malloc /arg3/ {if (n) {@ = count()}}"));
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

// REQ: DCMD-60
TEST_F(ScriptTools, CheckKnowsHowLongNamesAre) {
  const auto told = [this](const std::string& program, const std::string& words) {
    const Ran ran = check(program, words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  };
  const struct {
    const char* what;
    std::size_t longest;
    std::string before, after;
  } fields[] = {{"provider", 63, "", ":::"},
                {"module", 63, ":", "::"},
                {"function", 191, "::", ":"},
                {"name", 63, ":::", ""}};
  for (const auto& field : fields) {
    const std::string longest(field.longest, 'x');
    EXPECT_EQ(told(field.before + longest + field.after + "{@ = count();}", "-Z"), "");
    const std::string most = std::to_string(field.longest);
    const std::string one_more = std::to_string(field.longest + 1);
    EXPECT_EQ(told(field.before + longest + "y" + field.after + "{@ = count();}", "-Z"),
              "s.d:1:1: warning: no probe has a " + std::string(field.what) + " of " + one_more +
                  " characters: a kernel cuts names after " + most + "\n  instead: " + longest +
                  "\n");
    // Of a pattern what it matches at least.
    EXPECT_EQ(
        told(field.before + longest.substr(1) + "[abc]***" + field.after + "{@ = count();}", "-Z"),
        "");
    EXPECT_NE(told(field.before + longest + "?*" + field.after + "{@ = count();}", "-Z")
                  .find("of " + one_more + " characters"),
              std::string::npos);
  }
  const std::string cut(191, 'y');
  const std::string workload = "echo 'type M_Y \"" + cut + "tail\"' >w.wl\n";
  const auto script = [&](const std::string& function) {
    return run(workload + "echo 'dtmalloc::" + function + ":free {trace(1)}' >s.d\n" +
               "dtmalloc check s.d w.wl");
  };
  EXPECT_EQ(script(cut).out,
            "s.d:1:1: warning: the function is cut: the type's description has 195 characters, of "
            "which a kernel takes 191\n");
  const Ran refused = script(cut + "tail");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(
      refused.err.find("the probes' function is as much of the description as a kernel takes"),
      std::string::npos)
      << refused.err;
}

// REQ: DCMD-61
TEST_F(ScriptTools, RunPrintsADocument) {
  const std::string start = "printf 'a = malloc 100 M_TEMP M_WAITOK' | dtmalloc run - -q ";
  const std::string program = " -n 'END {trace(7)} dtmalloc:::malloc {@ = count()}'";
  const std::string document = run(start + "-x oformat=json" + program).out;
  EXPECT_NE(document.find("\"output\": [{\"value\":7}]"), std::string::npos) << document;
  EXPECT_EQ(document.find("aggregation-data"), std::string::npos);
  for (const char* style : {"--json", "--libxo", "--libxo=json"})
    EXPECT_EQ(run(start + style + program).out, document) << style;
  EXPECT_EQ(run(start + "--xml" + program).out, run(start + "-x oformat=xml" + program).out);
  EXPECT_NE(run(start + "-O --json" + program).out.find("{\"keys\": [],\"count\":1}"),
            std::string::npos);
  EXPECT_EQ(
      run(start + "--json --report types" + program).out,
      "7\n                1\n{\"types\":[\"cache\",\"devbuf\",\"temp\",\"UMA\",\"UMAHash\"]}\n");
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
  // Of clauses that share an aggregation: it is empty, or they add under texts of their own.
  EXPECT_EQ(
      run(start + "-n 'dtmalloc::temp:free {@ = count()} dtmalloc::temp:malloc /arg3 > 200/ "
                  "{@ = count()}'")
          .err,
      "dtrace: description 'dtmalloc::temp:free ' matched 2 probes\n"
      "dtmalloc: clause never ran: dtmalloc::temp:free\n"
      "dtmalloc: clause never ran: dtmalloc::temp:malloc; no firing made its predicate true\n");
  EXPECT_EQ(run(start + "-n 'dtmalloc::temp:free {@[1, \"given\"] = count()} "
                        "dtmalloc::temp:malloc {@[1, \"taken\"] = count()}'")
                .err,
            "dtrace: description 'dtmalloc::temp:free ' matched 2 probes\n"
            "dtmalloc: clause never ran: dtmalloc::temp:free\n");
  // exit() came first: nobody knows what would have been. That of END comes last.
  EXPECT_EQ(run(start + "-n 'dtmalloc::temp:malloc {exit(0)} dtmalloc::temp:free {trace(1)} "
                        "dtmalloc::temp:malloc /arg3 > 200/ {trace(2)}'")
                .err,
            "dtrace: description 'dtmalloc::temp:malloc ' matched 3 probes\n"
            "dtmalloc: clause never ran: dtmalloc::temp:free; exit() came first\n"
            "dtmalloc: clause never ran: dtmalloc::temp:malloc; no firing made its predicate true "
            "before exit()\n");
  EXPECT_NE(run(start + "-n 'dtmalloc::temp:free {trace(1)} END {exit(0)}'")
                .err.find("dtmalloc: clause never ran: dtmalloc::temp:free\n"),
            std::string::npos);
  // It ran; it may have run; nobody asks.
  for (const char* words :
       {"-n 'dtmalloc::temp:malloc {trace(1)}'", "-n 'dtmalloc::temp:malloc {@ = count()}'",
        "-n 'dtmalloc::temp:malloc {x = 1}'", "-n 'dtmalloc::temp:free {x = 1}'",
        "-qn 'dtmalloc::temp:free {trace(1)}'",
        "-n 'dtmalloc::temp:free {@ = count()} dtmalloc::temp:malloc {@ = count()}'",
        "-n 'dtmalloc::temp:free {@[\"x\"] = count()} dtmalloc::temp:malloc {@[\"x\"] = count()}'",
        "-n 'dtmalloc::temp:free {@[\"x\"] = count()} dtmalloc::temp:malloc {@[execname] = "
        "count()}'",
        "-n 'dtmalloc::temp:malloc {trace(*(int *)0)}'",
        "-n 'dtmalloc::temp:malloc {@ = sum(*(int *)0)}'",
        "-x bufpolicy=ring -x bufsize=32 -n 'BEGIN {n = 5} dtmalloc::temp:malloc {trace(1)} "
        "dtmalloc::temp:malloc {trace(2)}'",
        "-x bufpolicy=fill -x bufsize=32 -n 'dtmalloc::temp:malloc {trace(1)} "
        "dtmalloc::temp:malloc {trace(2)}'",
        "-n 'END {trace(1)} BEGIN'", "-n 'dtmalloc::temp:malloc {x++; trace(*(int *)0)}'",
        "-x cpu=1 -n 'dtmalloc::temp:malloc /cpu == 0/ {trace(1)}'",
        "-n 'dtmalloc::temp:malloc {exit(3); exit(5)}'",
        "-n 'dtmalloc::temp:malloc {printf(\"a\"); if (arg3 == 1) {trace(1)}}'"}) {
    EXPECT_EQ(run(start + words).err.find("never ran"), std::string::npos) << words;
  }
}

// REQ: DCMD-35
TEST_F(ScriptTools, WhatARunLostIsToldAtItsEnd) {
  const std::string machine =
      "printf 'kernel cpus=1\na = malloc 100 M_TEMP M_WAITOK @f;g;h\nfree a\n"
      "a = malloc 100 M_TEMP M_WAITOK @g' >w.wl; dtmalloc run w.wl -q ";
  const auto notes = [&](const std::string& words) {
    const std::string err = run(machine + words).err;
    const std::size_t at = err.find("dtmalloc: ");
    return at == std::string::npos ? "" : err.substr(at);
  };
  EXPECT_EQ(
      notes("-n 'dtmalloc::temp:malloc {trace(*(int *)4)} dtmalloc::temp:free {trace(1 / arg4)}'"),
      "dtmalloc: 2 errors on enabled probe ID 1 (ID 8: dtmalloc::temp:malloc)\n"
      "dtmalloc: 1 error on enabled probe ID 2 (ID 9: dtmalloc::temp:free)\n");
  // f, g, h and malloc; stack(n) gives what it is asked for.
  EXPECT_EQ(notes("-x stackframes=2 -n 'dtmalloc::temp:malloc {@[stack()] = count(); stack(3)}'"),
            "dtmalloc: stack() of dtmalloc::temp:malloc shows 2 frames of up to 4: stackframes=4 "
            "shows all\n");
  EXPECT_EQ(notes("-x stackframes=4 -n 'dtmalloc::temp:malloc {stack()}'"), "");
  EXPECT_EQ(notes("-n 'dtmalloc::temp:malloc {stack(1)}'"), "");
  // One chunk.
  EXPECT_EQ(notes("-x dynvarsize=1 -n 'dtmalloc::temp:malloc {a[n++] = 1; self->b = 1; c = 1}'"),
            "dtmalloc: a[]: 1 dynamic variable drop\n"
            "dtmalloc: self->b: 2 dynamic variable drops\n");
  EXPECT_EQ(notes("-x dynvarsize=1 -n 'dtmalloc::temp:malloc {self->b = 1} dtmalloc::temp:free "
                  "{self->b = 0}'"),
            "dtmalloc: self->b: 1 dynamic variable drop, 1 with non-empty dirty list\n");
  EXPECT_EQ(run("dtmalloc dtrace --workload w.wl -qn 'dtmalloc::temp:malloc {stack(); trace(*(int "
                "*)4);}'")
                .err.find("dtmalloc: "),
            std::string::npos);
}

// REQ: DCMD-36
TEST_F(ScriptTools, WhatCannotBeEnabledSaysWhatItNeeds) {
  const auto advice = [&](const std::string& words) {
    const Ran ran = run("printf '' | dtmalloc run - -q " + words);
    EXPECT_EQ(ran.status, 1) << words;
    return ran.err;
  };
  const std::string head = "dtrace: could not enable tracing: ";
  EXPECT_EQ(advice("-n 'BEGIN {system(\"true\")}'"),
            head + "Destructive actions not allowed\n    expected -w, or the option destructive\n");
  // A header of 12 bytes, an int, a long long behind it.
  EXPECT_EQ(advice("-x bufsize=16 -n 'BEGIN {trace(1); trace(timestamp)}'"),
            head +
                "Enabling exceeds size of buffer\n    expected a bufsize of at least 24: "
                ":::BEGIN records that much at once\n");
  EXPECT_NE(
      run("printf '' | dtmalloc run - -q -x bufsize=24 -n 'BEGIN {trace(1); trace(timestamp)}'")
          .status,
      1);
  EXPECT_EQ(advice("-x bufpolicy=fill -x bufsize=24 -n 'END {trace(timestamp)} END {trace(1)}'"),
            head +
                "END enablings exceed size of principal buffer\n    expected a larger bufsize: "
                "the records of END must fit beside others\n");
}

// REQ: DCMD-28
TEST_F(ScriptTools, ProgramsWithoutIf) {
  const Ran ran = run("dtmalloc dtrace -den 'BEGIN {if (pid) {trace(1)} else {trace(2)}}'");
  EXPECT_EQ(ran.status, 0);
  EXPECT_NE(ran.out.find("this->%condition_1"), std::string::npos) << ran.out;
}

}  // namespace
