// SPDX-License-Identifier: BSD-2-Clause
// Thread variables and associative arrays: what programs see of them.
#include <gtest/gtest.h>

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>
#include <vector>

#include "support/d_program.hpp"
#include "support/traced_machine.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;
using testing::trace;
using testing::Traced;

struct Machine : testing::TracedMachine {
  Machine() { EXPECT_TRUE(session->set_option("quiet")); }
};

// What a quiet program prints around one malloc() and one free(), without the end of the output.
std::string output(const std::string& program) {
  Machine machine;
  EXPECT_EQ(machine.start(program), "") << program;
  machine.pair();
  machine.session->stop();
  EXPECT_EQ(machine.err, "") << program;
  if (!machine.out.empty() && machine.out.back() == '\n') machine.out.pop_back();
  return machine.out;
}

// REQ: DVARS-01, DVARS-03
TEST(DynamicVariables, HoldWhatWasStored) {
  EXPECT_EQ(output("BEGIN {a[\"x\", 1] = 5; a[\"x\", 2] = 6; a[\"x\", 1]++; "
                   "printf(\"%d %d %d\", a[\"x\", 1], a[\"x\", 2], a[\"y\", 9]); exit(0)}"),
            "6 6 0");
  EXPECT_EQ(output("BEGIN {self->a = 4; this->b = 3; printf(\"%d\", self->a * this->b); exit(0)}"),
            "12");
  EXPECT_EQ(output("dtmalloc::aa:malloc {self->p = arg3; self->s[\"size\"] = arg3;}"
                   "dtmalloc::aa:free /self->p/ {printf(\"%d %d %d\", self->p, self->s[\"size\"], "
                   "self->s[\"x\"]);}"),
            "128 128 0");
}

// REQ: DVARS-01
TEST(DynamicVariables, TakeTheTypeOfTheFirstStore) {
  EXPECT_EQ(trace("self->x", "self->x = (short)3").type, "short");
  EXPECT_EQ(trace("a[1]", "a[1] = args[0]").type, "struct malloc_type *");
  EXPECT_EQ(trace("self->a[1, 2]", "self->a[0, 0] = \"t\"").type, "string");
  for (const char* update : {"self->x++", "self->x += 2", "--self->x"}) {
    EXPECT_EQ(trace("self->x", update).type, "int64_t") << update;
  }
  EXPECT_EQ(trace("a[pid]", "a[pid]++").bits, 1u);
  EXPECT_EQ(trace("a[pid]", "a[pid]++").type, "int64_t");
  EXPECT_EQ(trace("a[1] + a[2]", "a[1] += 5; a[2] -= 7").bits, static_cast<std::uint64_t>(-2));
  EXPECT_EQ(trace("a[1]++ + self->x--", "a[1] = 4; self->x = 3").bits, 7u);
  EXPECT_EQ(trace("++a[1] + --self->x", "a[1] = 4; self->x = 3").bits, 7u);
  EXPECT_EQ(trace("(self->x = 5) + (a[1] = 6)").bits, 11u);
  EXPECT_EQ(trace("sizeof (self->x)", "self->x = (short)3").bits, 2u);
  // A variable keeps 64 bits; a constant is cut to the type, a pointer steps by its target.
  EXPECT_EQ(trace("self->x", "self->x = (char)1; self->x = (long)arg3 + 4096").bits, 8192u);
  EXPECT_EQ(trace("self->x", "self->x = (char)1; self->x = -1").bits, 255u);
  EXPECT_EQ(trace("(long)++self->p - arg0", "self->p = args[0]").bits, 112u);
}

// REQ: DVARS-04
TEST(DynamicVariables, AreFreedByZeroAndNull) {
  EXPECT_EQ(trace("self->x + a[1]", "self->x = 1; a[1] = 2; self->x = 0; a[1] = 0").bits, 0u);
  // There is one chunk: freed, it holds the next variable after two passes of the cleaner.
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("dynvarsize=1"));
  ASSERT_EQ(machine.start("BEGIN {self->x = 1; self->x = 0; printf(\"%d\", self->x);}"
                          "dtmalloc::aa:malloc {a[7] = 3;} "
                          "dtmalloc::aa:free {printf(\"%d\", a[7]);}"),
            "");
  machine.kernel->cpus().clock().advance(1000000000);
  machine.pair();
  machine.session->stop();
  EXPECT_EQ(machine.out, "03\n");
  EXPECT_EQ(machine.err, "");
  EXPECT_EQ(trace("self->s == NULL", "self->s = \"x\"; self->s = NULL").bits, 1u);
  EXPECT_EQ(trace("self->s", "self->s = \"x\"; self->s = NULL").fault, Fault::badaddr);
  EXPECT_EQ(trace("self->s == \"\"", "self->s = \"x\"; self->s = 0").bits, 1u);
}

// REQ: DVARS-06
TEST(DynamicVariables, KeysAreNumbersOf64BitsAndTexts) {
  EXPECT_EQ(trace("a[4294967297]", "a[1] = 5").bits, 0u);
  EXPECT_EQ(trace("a[(char)1] + a[1ull]", "a[(short)1] = 5").bits, 10u);
  EXPECT_EQ(trace("a[-1]", "a[(long)-1] = 5; a[0xffffffff] = 6").bits, 5u);
  EXPECT_EQ(trace("a[probefunc]", "a[\"temp\"] = 5").bits, 5u);
  EXPECT_EQ(trace("a[stringof args[0]->ks_shortdesc]", "a[\"temp\"] = 5").bits, 5u);
  EXPECT_EQ(trace("a[substr(\"xtempx\", 1, 4)]", "a[\"temp\"] = 5; a[\"tem\"] = 6").bits, 5u);
  EXPECT_EQ(trace("a[\"\"]", "a[\"\"] = 5; a[\"a\"] = 6").bits, 5u);
  EXPECT_EQ(trace("a[\"a\", \"bc\"]", "a[\"ab\", \"c\"] = 5").bits, 0u);
  EXPECT_EQ(trace("a[args[0]]", "a[(struct malloc_type *)arg0] = 5").bits, 5u);
  EXPECT_EQ(trace("a[*args[2]]", "a[*args[2]] = 5").bits, 5u) << "a struct's bytes";
  const Traced null = trace("a[s]", "s = \"x\"; s = NULL; a[\"\"] = 5");
  EXPECT_EQ(null.fault, Fault::badaddr);
  EXPECT_EQ(null.fault_address, 0u);
  EXPECT_EQ(trace("a[stringof arg1]", "a[\"\"] = 5").fault, Fault::badaddr);
  // Names of two variables with equal keys are two names; so are self->a and a.
  EXPECT_EQ(trace("a[1] * 1000 + b[1] * 100 + self->a[1] * 10 + self->b",
                  "a[1] = 1; b[1] = 2; self->a[1] = 3; self->b = 4")
                .bits,
            1234u);
}

// REQ: DVARS-10
TEST(DynamicVariables, HaveAtMostEightKeys) {
  EXPECT_EQ(trace("a[1, 2, 3, 4, 5, 6, 7, 8] * 10 + a[1, 2, 3, 4, 5, 6, 7, 9]",
                  "a[1, 2, 3, 4, 5, 6, 7, 8] = arg3 / 4096")
                .bits,
            10u);
  EXPECT_EQ(trace("self->a[pid, tid, cpu, \"a\", \"b\", \"c\", 1, probefunc]",
                  "self->a[pid, tid, cpu, \"a\", \"b\", \"c\", 1, \"temp\"] += 3")
                .bits,
            3u);
  const Compiled nine("BEGIN { a[1, 2, 3, 4, 5, 6, 7, 8, 9] = 1; }");
  EXPECT_EQ(nine.message(), "Insufficient tuple registers to generate code");
  EXPECT_EQ(nine.tag(), "");
  EXPECT_FALSE(nine.ok);
  const std::string declared = "int a[int, int, int, int, int, int, int, int, int]; ";
  for (const char* use : {"trace(a[1, 2, 3, 4, 5, 6, 7, 8, 9])", "a[1, 2, 3, 4, 5, 6, 7, 8, 9] = 1",
                          "a[1, 2, 3, 4, 5, 6, 7, 8, 9]++"}) {
    EXPECT_EQ(Compiled(declared + "BEGIN { " + use + "; }").message(),
              "Insufficient tuple registers to generate code")
        << use;
  }
  EXPECT_TRUE(Compiled(declared + "BEGIN {}").ok) << "the code of a use needs the registers";
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("errtags"));
  const std::string refused = machine.start("BEGIN { a[1, 2, 3, 4, 5, 6, 7, 8, 9] = 1; }");
  EXPECT_NE(refused.find("= 1; }: Insufficient tuple registers to generate code\n"),
            std::string::npos)
      << refused;
}

// REQ: DVARS-12, DVARS-13
TEST(DynamicVariables, KeysAreComputedFromLeftToRight_AgainInUpdates) {
  EXPECT_EQ(trace("a[2, 3]", "i = 1; a[++i, ++i] = 5").bits, 5u);
  EXPECT_EQ(trace("a[1]", "i = 1; a[i++] = i").bits, 1u) << "the value comes first";
  EXPECT_EQ(trace("i", "i = 1; a[i++] = 5").bits, 2u);
  EXPECT_EQ(trace("i * 100 + a[2] * 10 + a[1]", "i = 1; a[1] = 5; a[i++] += 1").bits, 365u);
  EXPECT_EQ(trace("a[a[a[1]]]", "a[1] = 2; a[2] = 3; a[3] = 4").bits, 4u);
  EXPECT_EQ(trace("a[strlen(\"ab\"), strlen(\"abc\")]", "a[2, 3] = 7").bits, 7u);
}

// REQ: DVARS-11
TEST(DynamicVariables, StringsAndStructsAreStoredByValue) {
  EXPECT_EQ(trace("self->s", "t = \"one\"; self->s = t; t = \"two\"").text, "one");
  EXPECT_EQ(trace("strjoin(a[1], a[2])", "a[1] = \"one\"; a[2] = \"two\"").text, "onetwo");
  EXPECT_EQ(trace("a[1]", "a[1] = \"longer\"; a[1] = \"s\"").text, "s");
  EXPECT_EQ(trace("self->s[1] == 'n'", "self->s = \"one\"").bits, 1u);
  EXPECT_EQ(trace("self->s", "self->s = \"0123456789abcdefghij\"", 16).text, "0123456789abcdef");
  EXPECT_EQ(trace("self->s.mts_numallocs", "self->s = *args[2]").bits, 7u);
  EXPECT_EQ(trace("a[pid].mts_size", "a[pid] = *args[2]").bits, 0x11u);
  EXPECT_EQ(trace("a[2].mts_size", "a[1] = *args[2]; a[2] = a[1]").bits, 0x11u);
  EXPECT_EQ(trace("self->s.mts_size", "self->s = *args[2]; self->s.mts_size = 5").bits, 5u);
  EXPECT_EQ(trace("args[2]->mts_size", "self->s = *args[2]; self->s.mts_size = 5").bits, 0x11u);
  EXPECT_EQ(trace("self->s.mts_size", "self->s = *args[2]; a[0] = *args[2]; self->s = a[1]").bits,
            0u);
}

// REQ: DVARS-26
TEST(DynamicVariables, OfBytesAreZeroBeforeTheyAreStored) {
  EXPECT_EQ(
      output("struct s {int a; char t[8];}; struct s i[string]; self struct s j[int, string]; "
             "BEGIN { i[\"r\"].a++; i[\"r\"].a += 4; i[\"r\"].t[0] = 'x'; "
             "self->j[1, \"k\"].a = 7; self->j[1, \"k\"].a--; printf(\"%d %s %d %d %d\", "
             "i[\"r\"].a, stringof(i[\"r\"].t), self->j[1, \"k\"].a, i[\"other\"].a, "
             "self->j[2, \"k\"].a); exit(0); }"),
      "5 x 6 0 0");
  EXPECT_EQ(output("int m[string][4]; BEGIN { m[\"a\"][2] = 5; m[\"a\"][3] += 6; printf(\"%d %d %d "
                   "%d\", m[\"a\"][2], m[\"a\"][3], m[\"a\"][0], m[\"b\"][1]); exit(0); }"),
            "5 6 0 0");
  EXPECT_EQ(trace("a[2]", "a[1] = \"x\"").text, "");
  EXPECT_EQ(trace("a[2]", "a[1] = \"x\"").fault, Fault::none);
  EXPECT_EQ(trace("self->a[2]", "self->a[1] = \"x\"").text, "");
  EXPECT_EQ(trace("strjoin(a[2], \"b\")", "a[1] = \"x\"").text, "b");
  EXPECT_EQ(trace("a[2] == \"\" && a[3] == NULL && a[4] < a[1]", "a[1] = \"x\"").bits, 1u);
  EXPECT_EQ(trace("a[\"k\", a[\"k\", \"l\"]]", "a[\"x\", \"y\"] = \"z\"").text, "");
  EXPECT_EQ(
      output("string n[int]; BEGIN /n[1] == \"\"/ { n[1] = \"set\"; } BEGIN /n[1] == \"set\"/ "
             "{ printf(\"%s|%s\", n[1], n[2]); exit(0); }"),
      "set|");
  // It is there from then on: what takes the only chunk keeps it.
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("dynvarsize=1"));
  ASSERT_EQ(machine.start("struct s {int a;}; struct s i[int]; BEGIN { printf(\"%d\", i[1].a); "
                          "i[1].a = 3; printf(\"%d\", i[1].a); }"),
            "");
  machine.session->stop();
  EXPECT_EQ(machine.out, "03\n");
  EXPECT_EQ(machine.err, "");
  // A NULL in a string element frees it; the next use makes it anew.
  EXPECT_EQ(trace("a[1]", "a[1] = \"x\"; a[1] = NULL").text, "");
}

// REQ: DVARS-02, DVARS-14
TEST(DynamicVariables, OfAThreadAreNoOtherThreads) {
  const auto run = [](const std::string& program) {
    Machine machine;
    EXPECT_EQ(machine.start(program), "");
    machine.pair();
    machine.kernel->cpus().move_to(1);  // the same thread on another CPU
    machine.pair();
    {
      InterruptContext interrupt(machine.kernel->cpus());
      machine.kernel->free(machine.kernel->malloc(100, machine.type, M_NOWAIT), machine.type);
    }
    machine.pair();
    machine.kernel->cpus().clock().advance(1000000000);
    machine.session->stop();
    return machine.out;
  };
  EXPECT_EQ(run("BEGIN {self->n = 100; self->a[1] = 100;} dtmalloc::aa:malloc {self->n++; "
                "self->a[1]++; printf(\"%d/%d \", self->n, self->a[1]);} "
                "tick-1s {printf(\"tick %d \", ++self->n);} END {printf(\"%d\", self->n);}"),
            "1/1 2/2 1/1 3/3 tick 1 100\n");
}

// REQ: DVARS-22
TEST(DynamicVariables, AreSharedByTheProgramsOfAConsumer) {
  Machine machine;
  std::string other_out, other_err;
  auto other = machine.open(other_out, other_err);
  ASSERT_TRUE(other->set_option("quiet"));
  ASSERT_EQ(Machine::enable(*machine.session, "dtmalloc::aa:malloc {self->x = 5; a[1] = 6;}"), "");
  ASSERT_EQ(machine.start("dtmalloc::aa:free {printf(\"%d %d\", self->x, a[1]);}"), "");
  ASSERT_EQ(Machine::start(*other,
                           "dtmalloc::aa:malloc {self->x += 50; a[1] += 60;} "
                           "dtmalloc::aa:free {printf(\"%d %d\", self->x, a[1]);}"),
            "");
  machine.pair();
  machine.session->stop();
  other->stop();
  EXPECT_EQ(machine.out, "5 6\n");
  EXPECT_EQ(other_out, "50 60\n");
}

struct Refusal {
  const char* program;
  const char* tag;
  const char* message;
};

// REQ: DVARS-05, DVARS-07, DVARS-08, DVARS-09
TEST(DynamicVariables, AreRefusedWhereTheyDoNotFit) {
  constexpr Refusal kRows[] = {
      {"BEGIN { trace(self->x); }", "D_VAR_UNDEF",
       "in action list: self->x has not yet been declared or assigned"},
      {"BEGIN { trace(self->x[1]); }", "D_VAR_UNDEF",
       "in action list: self->x has not yet been declared or assigned"},
      {"BEGIN /x[1]/ {}", "D_VAR_UNDEF", "in predicate: x has not yet been declared or assigned"},
      {"BEGIN { a[1] = a[1] + 1; }", "D_VAR_UNDEF",
       "in action list: a has not yet been declared or assigned"},
      {"BEGIN { a[a[1]] = 1; }", "D_VAR_UNDEF",
       "in action list: a has not yet been declared or assigned"},
      {"BEGIN { a[1] = 1; a[1, 2] = 1; }", "D_PROTO_LEN",
       "in action list: a[ ] prototype mismatch: 2 keys passed, 1 expected"},
      {"BEGIN { self->a[1, 2] = 1; trace(self->a[1]); }", "D_PROTO_LEN",
       "in action list: a[ ] prototype mismatch: 1 key passed, 2 expected"},
      {"BEGIN { a[1, 2] = 1; a[1, \"x\"]++; }", "D_PROTO_ARG",
       "in action list: a[ ] key #2 is incompatible with prototype:\n\tprototype: int\n\t      "
       "key: string"},
      {"BEGIN { a[\"x\"] = 1; a[pid] = 1; }", "D_PROTO_ARG",
       "in action list: a[ ] key #1 is incompatible with prototype:\n\tprototype: string\n\t      "
       "key: pid_t"},
      {"BEGIN { a[1] = 1; a[2] = \"x\"; }", "D_OP_INCOMPAT",
       "in action list: operands have incompatible types: \"int\" = \"string\""},
      {"BEGIN { self->x = 1; self->x = \"x\"; }", "D_OP_INCOMPAT",
       "in action list: operands have incompatible types: \"int\" = \"string\""},
      {"BEGIN { self->x = \"x\"; self->x += 1; }", "D_OP_INCOMPAT",
       "in action list: operands have incompatible types: \"string\" += \"int\""},
      {"BEGIN { a[(void)1] = 1; }", "D_KEY_TYPE",
       "in action list: void expression may not be used as array index: key #1"},
      {"BEGIN { @x = count(); a[1, @x] = 1; }", "D_KEY_TYPE",
       "in action list: aggregation expression may not be used as array index: key #2"},
      {"BEGIN { a[trace(1)] = 1; }", "D_CG_EXPR",
       "in action list: tracing function trace( ) may not be called from a D expression (D program "
       "context required)"},
      {"BEGIN { this->a[1] = 1; }", "D_ARR_LOCAL",
       "in action list: local variables may not be used as associative arrays: a"},
      {"BEGIN { this->a[1]++; }", "D_ARR_LOCAL",
       "in action list: local variables may not be used as associative arrays: a"},
      {"BEGIN { x = 1; x[1] = 2; }", "D_ARR_BADREF",
       "in action list: cannot access x as an associative array"},
      {"BEGIN { self->x = 1; trace(self->x[1]); }", "D_ARR_BADREF",
       "in action list: cannot access x as an associative array"},
      {"BEGIN { pid[1]++; }", "D_ARR_BADREF",
       "in action list: cannot access pid as an associative array"},
      {"BEGIN { a[1] = 1; a = 1; }", "D_IDENT_BADREF",
       "in action list: array 'a' may not be referenced as scalar"},
      {"BEGIN { self->a[1] = 1; trace(self->a); }", "D_IDENT_BADREF",
       "in action list: array 'a' may not be referenced as scalar"},
      {"BEGIN { a[1] = 1; a(); }", "D_FUNC_IDKIND",
       "in action list: array 'a' may not be referenced as a function"},
      {"BEGIN { a[1] = 1; &a[1]; }", "D_ADDROF_VAR",
       "in action list: cannot take address of dynamic variable"},
      {"BEGIN { self->x = 1; &self->x; }", "D_ADDROF_VAR",
       "in action list: cannot take address of dynamic variable"},
      {"BEGIN { a[1] = exit(0); }", "D_OP_ACT",
       "in action list: operator = operands cannot be actions"},
      {"BEGIN { self->x = (void)1; }", "D_DECL_VOIDOBJ",
       "in action list: cannot have void object: x"},
      {"dtmalloc::temp:malloc { a[1] = args[1]->mti_probes; }", "D_OP_ARRFUN",
       "in action list: operator = may not be applied to operand of type \"uint32_t [2]\""},
      {"BEGIN { a[] = 1; }", "D_SYNTAX", "in action list: syntax error near \"]\""},
      {"BEGIN { self = 1; }", "D_SYNTAX", "in action list: syntax error near \"=\""},
      {"BEGIN { self->1 = 1; }", "D_SYNTAX", "in action list: syntax error near \"1\""},
  };
  for (const Refusal& row : kRows) {
    const Compiled program(row.program);
    EXPECT_EQ(program.tag(), row.tag) << row.program << ": " << program.message();
    EXPECT_EQ(program.message(), row.message) << row.program;
    EXPECT_EQ(program.space.variables.size(), 0u) << row.program;
    EXPECT_EQ(program.space.threads, 0u) << row.program;
  }
}

// REQ: DVARS-08
TEST(DynamicVariables, ATypeIsKnownToTheWholeProgram) {
  EXPECT_EQ(output("dtmalloc::aa:malloc {self->x = 1;} "
                   "dtmalloc::aa:free /self->x/ {printf(\"freed\");}"),
            "freed");
  EXPECT_TRUE(Compiled("BEGIN /self->x/ { self->x = 1; }").ok) << "actions come first";
  EXPECT_FALSE(Compiled("BEGIN /self->x/ {} END { self->x = 1; }").ok);
}

// REQ: DVARS-24
TEST(DynamicVariables, AreRefusedWhenTheirCodeDoubles) {
  std::string text = "1";
  for (int i = 0; i < 60; ++i) text = "a[" + text + "]++";
  const Compiled program("BEGIN { " + text + "; }");
  EXPECT_EQ(program.tag(), "D_NOREG");
  EXPECT_EQ(program.message(), "in action list: Insufficient registers to generate code");
  std::string nested = "0";
  for (int i = 0; i < 300; ++i) nested = "a[" + nested + "]";
  EXPECT_TRUE(Compiled("BEGIN { a[0] = 1; " + nested + " = 2; }").ok);
}

// REQ: DVARS-18, DVARS-19
TEST(DynamicVariables, DropsAreReportedByKindAndIncrement) {
  Machine machine;
  // 1680 bytes: 12 buckets and 12 chunks of 72.
  ASSERT_TRUE(machine.session->set_option("dynvarsize=1680"));
  ASSERT_TRUE(machine.session->set_option("cleanrate=1s"));
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc {n++; a[n] = n; printf(\"%d \", a[n]);}"
                          "dtmalloc::aa:free {a[++m] = 0;}"
                          "END {a[1000] = 1; printf(\"%d\", a[1000]);}"),
            "");
  Clock& clock = machine.kernel->cpus().clock();
  std::vector<void*> blocks;
  for (int i = 0; i < 17; ++i) blocks.push_back(machine.malloc());
  clock.advance(1500000000);
  EXPECT_EQ(machine.err, "dtrace: 5 dynamic variable drops\n");
  machine.kernel->free(blocks[0], machine.type);  // 0 to a[1]: dirty until the pass at 2 s
  machine.malloc();
  clock.advance(700000000);  // status at 2 s, the chunk is rinsing
  EXPECT_EQ(machine.err,
            "dtrace: 5 dynamic variable drops\n"
            "dtrace: 1 dynamic variable drop with non-empty dirty list\n");
  machine.malloc();
  machine.malloc();
  clock.advance(1000000000);  // clean
  machine.malloc();
  machine.session->stop();
  EXPECT_EQ(machine.err,
            "dtrace: 5 dynamic variable drops\n"
            "dtrace: 1 dynamic variable drop with non-empty dirty list\n"
            "dtrace: 2 dynamic variable drops with non-empty rinsing list\n"
            "dtrace: 1 dynamic variable drop\n");
  EXPECT_EQ(machine.out, "1 2 3 4 5 6 7 8 9 10 11 12 0 0 0 0 0 0 0 0 21 0\n");

  Machine tagged;
  ASSERT_TRUE(tagged.session->set_option("dynvarsize=1"));
  ASSERT_TRUE(tagged.session->set_option("droptags"));
  ASSERT_EQ(tagged.start("BEGIN {a[1] = 1; a[2] = 1; a[1] = 0; a[3] = 1;}"), "");
  tagged.session->stop();
  EXPECT_EQ(tagged.err,
            "dtrace: [DTRACEDROP_DYNAMIC] 1 dynamic variable drop\n"
            "dtrace: [DTRACEDROP_DYNDIRTY] 1 dynamic variable drop with non-empty dirty list\n");
}

// REQ: DVARS-15
TEST(DynamicVariables, TheLargestVariableMakesTheChunks) {
  const auto chunk = [](const std::string& body) {
    const Compiled program("dtmalloc::temp:malloc { " + body + "; }");
    EXPECT_TRUE(program.ok) << program.message();
    std::size_t most = 0;
    for (const Action& action : program.clause().actions) {
      most = std::max(most, action.values[0].dif.chunk_size());
    }
    return most;
  };
  EXPECT_EQ(chunk("self->x = 1"), 72u);
  EXPECT_EQ(chunk("a[1] = 1"), 72u);
  EXPECT_EQ(chunk("a[1] = 1; self->a[1] = 1"), 88u);
  EXPECT_EQ(chunk("a[1, \"x\"] = 1"), 88u + 256);
  EXPECT_EQ(chunk("self->s = \"x\""), 48u + 16 + 256);
  EXPECT_EQ(chunk("self->s = *args[2]"), 48u + 16 + 64);
  EXPECT_EQ(chunk("a[*args[2]] = 1"), 48u + 16 + 64 + 8);
  EXPECT_EQ(chunk("x = 1"), 0u);
}

// REQ: DVARS-20, DVARS-21
TEST(DynamicVariables, RatesAndSizesThatAreChangedAreReported) {
  const auto messages = [](const std::vector<const char*>& options) {
    Machine machine;
    for (const char* option : options) EXPECT_TRUE(machine.session->set_option(option));
    EXPECT_EQ(machine.start("BEGIN {self->x = 1;}"), "");
    const std::string said = machine.err;
    machine.session->stop();
    return said;
  };
  EXPECT_EQ(messages({}), "");
  EXPECT_EQ(messages({"cleanrate=5000hz"}), "");
  EXPECT_EQ(messages({"cleanrate=6000hz"}), "dtrace: cleaning rate reduced to 5000 hz\n");
  EXPECT_EQ(messages({"cleanrate=2min"}),
            "dtrace: cleaning rate increased to once every 60 seconds\n");
  EXPECT_EQ(messages({"dynvarsize=64g"}), "dtrace: dynamic variable size lowered to 32g\n");
  Machine manual;
  EXPECT_TRUE(manual.session->set_option("dynvarsize=1t"));
  EXPECT_TRUE(manual.session->set_option("bufresize=manual"));
  EXPECT_EQ(manual.start("BEGIN {self->x = 1;}"),
            "could not enable tracing: Cannot allocate memory");
}

}  // namespace
}  // namespace dtmalloc::dtrace
