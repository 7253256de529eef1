// SPDX-License-Identifier: BSD-2-Clause
// dtrace(1) as a command: options, order of work, statuses, messages (spec/dtrace.md 1.4, 1.5, 2).
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/command.hpp"

namespace {

using dtmalloc::support::CommandLine;
using dtmalloc::support::Ran;

class DtraceCommand : public CommandLine {
 protected:
  Ran d(const std::string& words) { return run("exec dtmalloc dtrace " + words); }
};

// REQ: DCMD-01
TEST_F(DtraceCommand, OptionsFollowGetopt) {
  const struct {
    const char* words;
    const char* out;
  } cases[] = {
      {"-qn 'BEGIN{trace(1); exit(0)}'", "1\n"},
      {"-q -n'BEGIN{trace(1); exit(0)}'", "1\n"},
      {"-xquiet -n 'BEGIN{trace(1); exit(0)}'", "1\n"},
      {"-x quiet -n 'BEGIN{trace(1); exit(0)}'", "1\n"},
      {"-b 64k -b64k -qn 'BEGIN{trace(1); exit(0)}'", "1\n"},
      {"-64 -6 4 -qn 'BEGIN{trace(1); exit(0)}'", "1\n"},
      {"-n 'BEGIN{trace(1); exit(0)}' -q", "1\n"},
      {"-Zqwn 'BEGIN{trace(1); exit(0)}'", "1\n"},
  };
  for (const auto& c : cases) {
    const Ran ran = d(c.words);
    EXPECT_EQ(ran.out, c.out) << c.words;
    EXPECT_EQ(ran.err, "") << c.words;
    EXPECT_EQ(ran.status, 0) << c.words;
  }
}

// REQ: DCMD-02, DCMD-03, DCMD-11
TEST_F(DtraceCommand, SpecifiersEnableWithTheirContext) {
  const Ran ran = d("-P 'dtrace {trace(1)}' -f temp -f 'temp/0/{}' -i '1{trace(2); exit(0)}'");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err,
            "dtrace: description 'dtrace ' matched 3 probes\n"
            "dtrace: description 'temp' matched 2 probes\n"
            "dtrace: description 'temp' matched 2 probes\n"
            "dtrace: description '1' matched 1 probe\n");
  EXPECT_NE(ran.out.find("  0      1                           :BEGIN         2\n"),
            std::string::npos)
      << ran.out;
  EXPECT_TRUE(d("-m ':temp'")
                  .err.starts_with("dtrace: invalid probe specifier :temp: probe "
                                   "description :temp:: does not match any probes\n"));
  const Ran over = d("-f a:b:c:d");
  EXPECT_EQ(over.status, 1);
  EXPECT_NE(over.err.find("Overspecified probe description"), std::string::npos) << over.err;
  EXPECT_NE(d("-f 4").err.find("probe identifier 4 not permitted when specifying functions"),
            std::string::npos);
}

// REQ: DCMD-04, DCMD-05
TEST_F(DtraceCommand, OtherWordsAreArguments) {
  EXPECT_EQ(d("12 -qn 'BEGIN {trace($1); trace($$2); trace($$0); exit(0)}' ab").out,
            "12abdtrace\n");
  EXPECT_EQ(d("-qn 'BEGIN {trace($1); exit(0)}' -- -5").out, "-5\n");
  EXPECT_EQ(d("-qn 'BEGIN {trace($$1); exit(0)}' -").out, "-\n");
  EXPECT_EQ(d("-qn 'BEGIN {trace($2); exit(0)}' 1 2").out, "2\n");
  const Ran extra = d("-qn 'BEGIN {trace($1); exit(0)}' 1 2");
  EXPECT_EQ(extra.status, 1);
  EXPECT_NE(extra.err.find("extraneous argument '2' ($2 is not referenced)"), std::string::npos)
      << extra.err;
  EXPECT_EQ(d("-x argref -qn 'BEGIN {trace($1); exit(0)}' 1 2").out, "1\n");
}

// REQ: DCMD-06, DCMD-04
TEST_F(DtraceCommand, ScriptsMayNameTheirInterpreter) {
  const std::string script =
      "printf '#!/usr/sbin/dtrace -s\\n#pragma D option quiet\\nBEGIN {printf(\"%%s %%s\\\\n\", "
      "$$0,"
      " $$1); exit(0); }\\n' >s.d; ";
  const Ran ran = run(script + "dtmalloc dtrace -s s.d x");
  EXPECT_EQ(ran.out, "s.d x\n\n");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(run(script + "dtmalloc dtrace -s /dev/stdin x <s.d").out, "/dev/stdin x\n\n");
}

// REQ: DCMD-07
TEST_F(DtraceCommand, WrongCommandLinesAreStatusTwo) {
  const struct {
    const char* words;
    const char* first;
    bool usage;
  } cases[] = {
      {"", "Usage: dtrace [-32|-64] ", true},
      {"-y", "dtrace: illegal option -- y\nUsage: ", true},
      {"-qk", "dtrace: illegal option -- k\nUsage: ", true},
      {"-n", "dtrace: option requires an argument -- n\nUsage: ", true},
      {"-33", "dtrace: illegal option -- 33\nUsage: ", true},
      {"-lV", "dtrace: only one of the [-AGhlV] options can be specified at a time\n", false},
      {"-G -h", "dtrace: only one of the [-AGhlV] options can be specified at a time\n", false},
      {"-B -o x -n BEGIN", "dtrace: -B not valid in combination with -o option\n", false},
      {"-B -l", "dtrace: -B not valid in combination with [-AGl] options\n", false},
      {"--cpux 2", "dtmalloc: unknown option --cpux; did you mean --cpus?\n", false},
      {"--cpus x -l", "dtmalloc: ", false},
  };
  for (const auto& c : cases) {
    const Ran ran = d(c.words);
    EXPECT_EQ(ran.status, 2) << c.words;
    EXPECT_EQ(ran.out, "") << c.words;
    EXPECT_TRUE(ran.err.starts_with(c.first)) << c.words << ": " << ran.err;
    EXPECT_EQ(
        ran.err.find("\t[-n [[[ provider: ] module: ] func: ] name [[ predicate ] action ]]") !=
            std::string::npos,
        c.usage)
        << c.words;
  }
}

// REQ: DCMD-08
TEST_F(DtraceCommand, VersionAndCompileOnly) {
  const Ran version = d("-V");
  EXPECT_EQ(version.out, "dtrace: Sun D 1.13\n");
  EXPECT_EQ(version.status, 0);
  for (const char* words : {"-e", "-en BEGIN", "-e -n 'BEGIN{trace(1)}'"}) {
    const Ran ran = d(words);
    EXPECT_EQ(ran.status, 0) << words;
    EXPECT_EQ(ran.out + ran.err, "") << words;
  }
  EXPECT_EQ(d("-en nosuch").status, 1);
}

// REQ: DCMD-09
TEST_F(DtraceCommand, ExitIsTheStatus) {
  EXPECT_EQ(d("-qn 'BEGIN {exit(3)}'").status, 3);
  EXPECT_EQ(d("-qn 'BEGIN {exit(257)}'").status, 1);
  EXPECT_EQ(d("-qn 'BEGIN {exit(3)} END {exit(4)}'").status, 4);
}

// REQ: DCMD-10, DCMD-12
TEST_F(DtraceCommand, MessagesHaveTheirShape) {
  const struct {
    const char* words;
    const char* text;
  } cases[] = {
      {"-n 'BEGIN {trace(nope);}'",
       "dtrace: invalid probe specifier BEGIN {trace(nope);}: in action list: failed to resolve "
       "nope: Unknown variable name\n"},
      {"-s nosuch.d", "dtrace: failed to open nosuch.d: No such file or directory\n"},
      {"-x nosuch=1 -s nosuch.d", "dtrace: failed to set -x nosuch: Invalid option name\n"},
      {"-b 4q -n BEGIN", "dtrace: failed to set -b 4q: Invalid value for specified option\n"},
      {"-X z -n BEGIN", "dtrace: failed to set -X z: Invalid value for specified option\n"},
      {"-n BEGIN -o /nonexistent/x",
       "dtrace: failed to open output file '/nonexistent/x': No such file or directory\n"},
      {"-n 'BEGIN {x = }' -n nosuch", "dtrace: invalid probe specifier BEGIN {x = }: "},
  };
  for (const auto& c : cases) {
    const Ran ran = d(c.words);
    EXPECT_EQ(ran.status, 1) << c.words;
    EXPECT_TRUE(ran.err.starts_with(c.text)) << c.words << ": " << ran.err;
    EXPECT_EQ(ran.out, "") << c.words;
  }
  const Ran script = run("printf 'BEGIN\\n{\\n\\tx = ;\\n}\\n' >s.d; dtmalloc dtrace -s s.d");
  EXPECT_TRUE(script.err.starts_with("dtrace: failed to compile script s.d: line 3: "))
      << script.err;
}

// REQ: DCMD-13, DCMD-14
TEST_F(DtraceCommand, ListsProbes) {
  const Ran begin = d("-l -n BEGIN");
  EXPECT_EQ(begin.status, 0);
  EXPECT_EQ(begin.out,
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "    1     dtrace                                                     BEGIN\n");
  EXPECT_EQ(begin.err, "");
  const Ran none = d("-l -n nosuch -n END");
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(none.err, "dtrace: failed to match :::nosuch: No probe matches description\n");
  EXPECT_EQ(none.out,
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "    2     dtrace                                                     END\n");
  EXPECT_EQ(d("-l -i 3").out,
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "    3     dtrace                                                     ERROR\n");
  const Ran all = d("-l");
  EXPECT_NE(all.out.find("\n    1     dtrace "), std::string::npos);
  EXPECT_NE(
      all.out.find("   dtmalloc                                              devbuf malloc\n"),
      std::string::npos);
  EXPECT_EQ(d("-l -P dtmalloc -q").status, 0);
  const Ran by_run = run("printf '' | dtmalloc list - -n BEGIN");
  EXPECT_EQ(by_run.out, begin.out);
}

// REQ: DCMD-15
TEST_F(DtraceCommand, ListingShowsAttributes) {
  EXPECT_EQ(d("-lv -n 'dtmalloc::temp:malloc'").out.substr(74 + 76),
            "\n\tProbe Description Attributes\n"
            "\t\tIdentifier Names: Private\n"
            "\t\tData Semantics:   Private\n"
            "\t\tDependency Class: Unknown\n"
            "\n\tArgument Attributes\n"
            "\t\tIdentifier Names: Stable\n"
            "\t\tData Semantics:   Stable\n"
            "\t\tDependency Class: Common\n"
            "\n\tArgument Types\n"
            "\t\targs[0]: struct malloc_type *\n"
            "\t\targs[1]: struct malloc_type_internal *\n"
            "\t\targs[2]: struct malloc_type_stats *\n"
            "\t\targs[3]: unsigned long\n"
            "\t\targs[4]: int\n"
            "\n");
  EXPECT_NE(d("-lv -n BEGIN").out.find("\n\tArgument Types\n\t\tNone\n\n"), std::string::npos);
}

// REQ: DCMD-16
TEST_F(DtraceCommand, NoMatches) {
  const Ran zero = d("-n 'foo'");
  EXPECT_EQ(zero.status, 1);
  EXPECT_TRUE(
      zero.err.starts_with("dtrace: invalid probe specifier foo: probe description :::foo "
                           "does not match any probes\n"));
  EXPECT_EQ(d("-q").err, "dtrace: no probes specified\n");
  EXPECT_EQ(d("-q").status, 1);
  EXPECT_EQ(d("-Zqn 'dtmalloc::later:malloc {} BEGIN {exit(0)}'").status, 0);
  EXPECT_EQ(d("-x zdefs -qn 'dtmalloc::later:malloc {} BEGIN {exit(0)}'").status, 0);
}

// REQ: DCMD-17
TEST_F(DtraceCommand, OutputIsAppended) {
  const Ran ran =
      run("printf 'old\\n' >f; dtmalloc dtrace -o f -qn 'BEGIN{printf(\"new\"); exit(0)}';"
          " dtmalloc dtrace -o f -n 'BEGIN{exit(0)}'; cat f");
  EXPECT_EQ(ran.out,
            "old\nnew\nCPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN \n\n");
  EXPECT_EQ(d("-B -qn 'BEGIN{trace(1); exit(0)}'").out, "1\n");
}

// REQ: DCMD-18
TEST_F(DtraceCommand, WhatNeedsAProcessIsRefused) {
  for (const char* words : {"-c true", "-p 1", "-G -n BEGIN", "-h -n BEGIN", "-32 -n BEGIN"}) {
    const Ran ran = d(words);
    EXPECT_EQ(ran.status, 1) << words;
    EXPECT_TRUE(ran.err.starts_with("dtrace: ")) << words;
    EXPECT_GT(ran.err.size(), 30u) << words;
  }
}

// REQ: DCMD-19
TEST_F(DtraceCommand, ExitInBeginEndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(d("-qn 'BEGIN {printf(\"%s\", execname); exit(0)}'").out, "dtrace\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900));
}

// REQ: DCMD-20, DCMD-22
TEST_F(DtraceCommand, TheMachineLives) {
  const Ran ran = d(
      "-x statusrate=20ms -qn 'dtmalloc:::malloc {@[execname] = count(); @f[probefunc] = sum(arg3)}"
      " tick-300ms {exit(7)}'");
  EXPECT_EQ(ran.status, 7);
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("\n  nginx "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\n  iov "), std::string::npos) << ran.out;
  const Ran file =
      run("printf 'type M_A \"a\"\\nrepeat 10 { x = malloc 20 M_A M_WAITOK }' >w.wl;"
          " dtmalloc dtrace --workload w.wl -qn 'dtmalloc::a:malloc {@ = sum(arg3)}'");
  EXPECT_EQ(file.out, "\n              320\n");
  EXPECT_EQ(file.status, 0);
}

// REQ: DCMD-20
TEST_F(DtraceCommand, ExitEndsAWorkload) {
  const Ran ran =
      run("printf 'repeat 1000000000 { x = malloc 20 M_TEMP M_WAITOK\\n free x }' >w.wl;"
          " dtmalloc dtrace --workload w.wl --clock virtual -qn 'tick-1ms {exit(2)}'");
  EXPECT_EQ(ran.status, 2);
}

// REQ: DCMD-21
TEST_F(DtraceCommand, AnInterruptEndsIt) {
  const Ran ran = run(
      "dtmalloc dtrace -qn 'BEGIN {@ = count()} END {printf(\"end\")}' >o 2>e & p=$!; sleep 0.5;"
      " kill -INT $p; wait $p; echo $?; cat o e");
  EXPECT_EQ(ran.out, "0\n\nend\n                1\n");
}

// REQ: DCMD-23, DCMD-24, DCMD-25
TEST_F(DtraceCommand, PreprocessesScripts) {
  const std::string script = "printf 'BEGIN { printf(\"%%d\\\\n\", TWO); exit(0); }\\n' >c.d; ";
  EXPECT_EQ(run(script + "dtmalloc dtrace -qCs c.d -DTWO=2").out, "2\n\n");
  EXPECT_EQ(run(script + "dtmalloc dtrace -q -x cpp -x define=TWO=3 -s c.d").out, "3\n\n");
  EXPECT_EQ(run(script + "printf '' | dtmalloc run - -qC -DTWO=4 -s c.d").out, "4\n\n");
  // -D alone does not turn it on; a program given in place is not preprocessed.
  EXPECT_EQ(run(script + "dtmalloc dtrace -q -DTWO=2 -s c.d").status, 1);
  EXPECT_EQ(d("-qC -DTWO=2 -n 'BEGIN {trace(TWO)}'").status, 1);
  EXPECT_EQ(run(script + "dtmalloc dtrace -qC -DTWO=2 -UTWO -s c.d").status, 1);
  const Ran macros =
      run("mkdir d; echo '#define X 8' >d/x.h; printf '#!/usr/sbin/dtrace -Cs\\n#include "
          "\"x.h\"\\nBEGIN\\n{\\n"
          "#if __SUNW_D && __SUNW_D_VERSION >= 0x01006000 && defined(__FreeBSD_16_0_CURRENT) && "
          "__amd64 && __unix\\n printf(\"%%d\", X);\\n#endif\\n exit(0);\\n}\\n' >m.d;"
          " dtmalloc dtrace -qC -I d -s m.d");
  EXPECT_EQ(macros.out, "8\n") << macros.err;
  EXPECT_NE(run("mkdir d; echo >d/x.h; printf '#include \"x.h\"\\nBEGIN {exit(0)}\\n' >m.d;"
                " dtmalloc dtrace -qCH -Id -s m.d")
                .err.find("d/x.h"),
            std::string::npos);
  const Ran bad = run("printf '#error no\\nBEGIN {}' >b.d; dtmalloc dtrace -C -s b.d");
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(
      bad.err.find("dtrace: failed to compile script b.d: Preprocessor failed to process input"
                   " program\n"),
      std::string::npos)
      << bad.err;
  EXPECT_EQ(run(script + "dtmalloc dtrace -qC -x cpppath=/nonexistent/cpp -s c.d").err,
            "dtrace: failed to compile script c.d: Preprocessor not found\n");
  EXPECT_NE(d("-n '#pragma D option define=X\nBEGIN{}'")
                .err.find("Option cannot be used from within a D program"),
            std::string::npos);
}

// REQ: DCMD-26
TEST_F(DtraceCommand, ShowsIntermediateCode) {
  const Ran ran = d("-S -en 'BEGIN/pid/{x = 1; trace(execname); trace(x)}'");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            "\nDIFO 0x800000000 returns D type (integer) (size 4)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 29011601    ldgs DT_VAR(278), %r1\t\t! DT_VAR(278) = \"pid\"\n"
            "01: 23000001    ret  %r1\n"
            "\nNAME             ID   KND SCP FLAG TYPE\n"
            "pid              116  scl glb r    D type (integer) (size 4)\n"
            "\nDIFO 0x800000080 returns D type (integer) (size 4)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 25000001    setx DT_INTEGER[0], %r1\t\t! 0x1\n"
            "01: 2a050001    stgs %r1, DT_VAR(1280)\t\t! DT_VAR(1280) = \"x\"\n"
            "02: 23000001    ret  %r1\n"
            "\nNAME             ID   KND SCP FLAG TYPE\n"
            "x                500  scl glb w    D type (integer) (size 4)\n"
            "\nDIFO 0x800000100 returns string (unknown) by ref (size 256)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 29011801    ldgs DT_VAR(280), %r1\t\t! DT_VAR(280) = \"execname\"\n"
            "01: 23000001    ret  %r1\n"
            "\nNAME             ID   KND SCP FLAG TYPE\n"
            "execname         118  scl glb r    string (unknown) by ref (size 256)\n"
            "\nDIFO 0x800000180 returns D type (integer) (size 4)\n"
            "OFF OPCODE      INSTRUCTION\n"
            "00: 29050001    ldgs DT_VAR(1280), %r1\t\t! DT_VAR(1280) = \"x\"\n"
            "01: 23000001    ret  %r1\n"
            "\nNAME             ID   KND SCP FLAG TYPE\n"
            "x                500  scl glb r    D type (integer) (size 4)\n");
}

// REQ: DCMD-34
TEST_F(DtraceCommand, ReportsStability) {
  const std::string stable =
      "\t\tIdentifier Names: Stable\n\t\tData Semantics:   Stable\n\t\tDependency Class: Common\n";
  const std::string head =
      "\nStability attributes for description dtrace:::BEGIN:\n"
      "\n\tMinimum Probe Description Attributes\n" +
      stable + "\n\tMinimum Statement Attributes\n" + stable;
  const Ran traced = d("-qvn 'dtrace:::BEGIN{exit(0)}'");
  EXPECT_EQ(traced.out, head + "\n\n");
  const Ran compiled = d("-ven 'dtrace:::BEGIN{exit(0)}'");
  EXPECT_TRUE(compiled.out.starts_with(
      head + "\ndtrace:::BEGIN\n\n\tProbe Description Attributes\n" + stable))
      << compiled.out;
  EXPECT_EQ(compiled.err, "");
  // Without a provider the description is as unstable as any.
  EXPECT_NE(d("-ven BEGIN").out.find("Description Attributes\n\t\tIdentifier Names: Unstable\n"),
            std::string::npos);
  const Ran script = run("echo 'BEGIN {exit(0)}' >s.d; dtmalloc dtrace -qv -s s.d");
  EXPECT_TRUE(script.out.starts_with("\nStability attributes for script s.d:\n")) << script.out;
}

// REQ: DCMD-29
TEST_F(DtraceCommand, AnonymousEnablings) {
  const std::string start =
      "printf 'a = malloc 100 M_TEMP M_WAITOK' >w.wl;"
      " dtmalloc dtrace -A --anonymous d/f -qn 'dtmalloc::temp:malloc {@ = sum(arg3)}'; echo $?;";
  const Ran saved = run(start + " dtmalloc dtrace -aq --anonymous d/f --workload w.wl");
  EXPECT_EQ(saved.err, "dtrace: saved anonymous enabling in d/f\n");
  EXPECT_EQ(saved.out, "0\n\n              128\n");
  EXPECT_EQ(run(start + " dtmalloc run w.wl -aq --anonymous d/f").out, "0\n\n              128\n");
  EXPECT_EQ(run("export XDG_STATE_HOME=$PWD/s; dtmalloc dtrace -A -n BEGIN; ls s/dtmalloc").out,
            "anonymous\n");
  const Ran both = run(start + " dtmalloc dtrace -aq --anonymous d/f -n BEGIN");
  EXPECT_EQ(both.status, 1);
  EXPECT_NE(both.err.find("Can't claim anonymous state and enable probes"), std::string::npos)
      << both.err;
  const Ran removed =
      run(start + " dtmalloc dtrace -A --anonymous d/f; dtmalloc dtrace -a --anonymous d/f");
  EXPECT_EQ(removed.err,
            "dtrace: saved anonymous enabling in d/f\n"
            "dtrace: cleaned up old anonymous enabling in d/f\n"
            "dtrace: could not enable tracing: No anonymous tracing state\n");
  EXPECT_EQ(removed.status, 1);
}

// REQ: DCMD-43
TEST_F(DtraceCommand, AnAnonymousEnablingHoldsWhatWasCompiled) {
  const std::string start =
      "printf 'a = malloc 100 M_TEMP M_WAITOK' >w.wl; echo 'BEGIN {printf(\"%d\", N);}' >x.d;"
      "mkdir -p l; echo 'inline int Q = 5;' >l/q.d;";
  EXPECT_EQ(run(start + " dtmalloc dtrace -A -C -D N=3 -s x.d --anonymous f;"
                        " rm x.d; dtmalloc run w.wl -aq --anonymous f")
                .out,
            "3\n");
  EXPECT_EQ(run(start + " dtmalloc dtrace -A -L l -x libdir=l -n 'BEGIN {trace(Q)}' --anonymous f;"
                        " rm -r l; dtmalloc run w.wl -aq --anonymous f")
                .out,
            "5\n");
  // The claimer does what acts on the host.
  EXPECT_EQ(run(start + " dtmalloc dtrace -A -wqn 'BEGIN {system(\"echo sys\")}' --anonymous f;"
                        " dtmalloc run w.wl -wqa --anonymous f")
                .out,
            "sys\n\n");
  const Ran edited = run(start +
                         " dtmalloc dtrace -A -x strsize=9 -n BEGIN --anonymous f;"
                         " sed -i s/strsize=9/strsize=0/ f; dtmalloc run w.wl -a"
                         " --anonymous f");
  EXPECT_EQ(edited.err,
            "dtrace: saved anonymous enabling in f\n"
            "dtrace: an anonymous enabling is damaged\n");
  EXPECT_EQ(edited.status, 1);
}

// REQ: DCMD-44
TEST_F(DtraceCommand, AClosedPipeEndsIt) {
  const Ran live =
      run("(timeout 20 dtmalloc dtrace -qn 'tick-10ms {printf(\"x%d\\n\", i++)}'; echo $? >s) |"
          " head -2; cat s");
  EXPECT_TRUE(live.out.starts_with("x0\nx1\n")) << live.out;
  EXPECT_EQ(live.out.find("124"), std::string::npos) << live.out;
  const Ran virtual_time =
      run("printf 'repeat 100000000000 { a = malloc 9 M_TEMP M_WAITOK\nfree a\n}\n' >l.wl;"
          "(timeout 20 dtmalloc run l.wl -qn 'dtmalloc::temp:malloc {printf(\"%d\\n\", arg3)}';"
          " echo $? >s) | head -1; cat s");
  EXPECT_TRUE(virtual_time.out.starts_with("16\n")) << virtual_time.out;
  EXPECT_EQ(virtual_time.out.find("124"), std::string::npos) << virtual_time.out;
  // What system() starts is a process as any.
  EXPECT_EQ(run("dtmalloc dtrace -wqn 'BEGIN {system(\"yes | head -1\"); exit(0)}'").err, "");
}

// REQ: DCMD-45
TEST_F(DtraceCommand, TheFirstInterruptIsNotLost) {
  // timeout(1) signals the process and then its group.
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run("timeout -s TERM 1 dtmalloc dtrace -qn 'END {trace(\"bye\")}'").out, "\nbye\n");
  const Ran document =
      run("timeout --foreground -s INT 1 dtmalloc dtrace -x oformat=xml -qn 'END {trace(1)}'");
  EXPECT_TRUE(document.out.starts_with("<?xml")) << document.out;
}

// REQ: DCMD-46
TEST_F(DtraceCommand, APanicOfEndIsTold) {
  const Ran ran = run(
      "printf 'a = malloc 100 M_TEMP M_WAITOK' | dtmalloc run - -wqn 'dtmalloc::temp:malloc {@ ="
      " count()} END {trace(\"on\")} END {panic()}'");
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(ran.err.starts_with("panic: dtrace: panic action at probe dtrace:::END (ecb 0x"))
      << ran.err;
  EXPECT_EQ(ran.out, "on\n                1\n");
}

// REQ: DCMD-27
TEST_F(DtraceCommand, RunTakesTheSameFlags) {
  const Ran ran =
      run("printf 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc run - -q -f 'temp {@ = count()}'"
          " -i '1 {trace(\"b\")}'");
  EXPECT_EQ(ran.out, "b\n                1\n") << ran.err;
  const Ran compiled = run("printf 'expect 0' | dtmalloc run - -e -n BEGIN");
  EXPECT_EQ(compiled.status, 0);
  EXPECT_EQ(compiled.out + compiled.err, "");
  EXPECT_NE(run("printf '' | dtmalloc run - -eS -n 'BEGIN{trace(1)}'").err.find("\nDIFO 0x"),
            std::string::npos);
}

}  // namespace
