// SPDX-License-Identifier: BSD-2-Clause
// Decision lists of expressions over probe arguments, against the interpreter; remembered keys.
#include "dtrace/core/quick.hpp"

#include <gtest/gtest.h>

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <string>

#include "fake_provider.hpp"
#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

// Of dtmalloc: args[0] to args[2] are pointers.
QuickScope scope() {
  QuickScope result;
  result.pointer_arguments = 7;
  return result;
}

// Of sum(expression) on a probe of dtmalloc.
struct Argument : testing::Compiled {
  explicit Argument(const std::string& expression)
      : Compiled("dtmalloc::temp:malloc { g = 1; @ = sum(" + expression + "); }") {
    EXPECT_TRUE(ok) << expression << ": " << error.message;
  }
  const VerifiedDif& dif() const { return clause().actions.back().argument->dif; }
};

TEST(Quick, DecisionListsGiveWhatTheInterpreterGives) {
  testing::FakeKernel kernel;
  for (const char* expression : {"arg3",
                                 "args[3]",
                                 "args[4]",
                                 "5",
                                 "arg3 > 16",
                                 "args[3] > 16",
                                 "arg3 >= 16 && arg3 < 4096",
                                 "arg3 == 0 || arg4 == -1",
                                 "!(arg3 > 16)",
                                 "arg4 < 0",
                                 "args[4] < 0",
                                 "args[3] <= 1000",
                                 "arg3 > 100 ? arg3 : 100",
                                 "(uint8_t)arg3",
                                 "(char)arg3",
                                 "arg3 >> 4",
                                 "arg3 << 2",
                                 "(uint8_t)arg3 == 16",
                                 "arg3 != arg4",
                                 "arg3 ? 1 : 0",
                                 "arg3 > 16 ^^ arg4 > 2",
                                 "17 < arg3",
                                 "16 >= args[3]",
                                 "0 > arg4",
                                 "-128 <= arg4",
                                 "args[3] > 0xffffffffffffffff",
                                 "args[3] < 0",
                                 "(long)arg3 <= 0x7fffffffffffffff",
                                 "(long)arg3 > 0x7fffffffffffffff",
                                 "(char)arg3 < -127",
                                 "arg3 < arg4",
                                 "args[3] >= arg4",
                                 "arg3 != 16 && arg3 != 17 && arg3 != 100"}) {
    const Argument compiled(expression);
    QuickScope words = scope();
    const auto quick = QuickDif::of(compiled.dif(), words);
    if (std::string(expression).find("^^") == std::string::npos) {
      ASSERT_TRUE(quick) << expression;
    }
    if (!quick) continue;
    testing::FakeState state(kernel);
    state.reserve(compiled.space);
    for (const std::int64_t size : {0LL, 1LL, 16LL, 17LL, 100LL, 128LL, 255LL, 256LL, 272LL, 999LL,
                                    4096LL, 65536LL, 1LL << 40, -1LL, -128LL}) {
      for (const std::int64_t zone : {-1LL, 0LL, 2LL, 13LL, 4294967295LL}) {
        const std::uint64_t arguments[5] = {1, 2, 3, static_cast<std::uint64_t>(size),
                                            static_cast<std::uint64_t>(zone)};
        state.args.assign(arguments, arguments + 5);
        EXPECT_EQ(quick->value(arguments), run(compiled.dif(), state.state))
            << expression << " of " << size << ", " << zone;
      }
    }
  }
}

TEST(Quick, WhatMayFaultStoreOrVaryIsInterpreted) {
  for (const char* expression : {"g++", "arg3 / arg4", "*(int *)arg3", "args[0]->ks_version",
                                 "arg3 + 1", "arg5", "rand()", "execname == \"a\""}) {
    QuickScope words = scope();
    EXPECT_FALSE(QuickDif::of(Argument(expression).dif(), words)) << expression;
  }
}

TEST(Quick, ExpressionsBeginWithWordsOfTheFiring) {
  const auto word_of = [](const std::string& expression) {
    QuickScope words = scope();
    const auto quick = QuickDif::of(Argument(expression).dif(), words);
    EXPECT_TRUE(quick) << expression;
    if (!quick || quick->operand() == nullptr) return unsigned{QuickOperand::kNone};
    return unsigned{quick->operand()->word};
  };
  EXPECT_EQ(word_of("arg3"), kWordArgument + 3);
  EXPECT_EQ(word_of("arg1"), kWordPointer + 1);
  EXPECT_EQ(word_of("timestamp"), kWordTimestamp);
  EXPECT_EQ(word_of("vtimestamp"), kWordVtimestamp);
  EXPECT_EQ(word_of("walltimestamp"), kWordWalltimestamp);
  QuickScope words = scope();
  words.probe = 77;
  words.epid = 5;
  EXPECT_EQ(QuickDif::of(Argument("id").dif(), words)->value(nullptr), 77U);
  EXPECT_EQ(QuickDif::of(Argument("epid").dif(), words)->value(nullptr), 5U);
  EXPECT_EQ(words.words, 0U);
  std::uint64_t given[kQuickWords] = {};
  given[kWordGlobal] = 42;
  EXPECT_EQ(QuickDif::of(Argument("g").dif(), words)->value(given), 42U);
  EXPECT_EQ(words.globals, std::vector<std::uint32_t>{0});
  EXPECT_EQ(words.words, 1U << kWordGlobal);
}

TEST(Quick, AKeyIsRememberedByItsArgumentsAndForgottenWhenMemoryChanges) {
  AddressMap map;
  static const char kText[] = "temp";
  map.add_data(kText, sizeof kText);
  QuickStep step;
  step.key_count = 2;
  step.key_words[0] = 0;
  step.key_words[1] = 3;
  QuickMemo memo;
  std::uint64_t arguments[5] = {7, 0, 0, 64, 0};
  EXPECT_FALSE(step.remembers(memo, arguments, map.generation()));
  step.remember(memo, arguments, map.generation());
  EXPECT_TRUE(step.remembers(memo, arguments, map.generation()));
  arguments[4] = 9;
  EXPECT_TRUE(step.remembers(memo, arguments, map.generation()));
  arguments[3] = 128;
  EXPECT_FALSE(step.remembers(memo, arguments, map.generation()));
  arguments[3] = 64;
  map.retire(kText);
  EXPECT_FALSE(step.remembers(memo, arguments, map.generation()));
  step.remember(memo, arguments, map.generation());
  map.restore(kText, sizeof kText);
  EXPECT_FALSE(step.remembers(memo, arguments, map.generation()));
}

// What prints of a program on a machine that allocates 3 blocks of each of two sizes under two
// types, with a type that goes and comes back under another description in between.
class QuickRun : public ::testing::Test {
 protected:
  std::string of(const std::string& program) {
    KernelConfig config;
    config.cpus = 2;
    config.fixed_cpus = true;
    Kernel kernel(config);
    kernel.cpus().bind(0);
    malloc_type& a = kernel.define_type("M_A", "aa");
    malloc_type& b = kernel.define_type("M_B", "bb");
    std::string out;
    {
      Framework framework(kernel.cpus(), kernel.addresses());
      framework.load_standard_providers();
      load_dtmalloc(framework, kernel);
      Session session(framework, {[&](std::string_view text) { out += text; },
                                  [&](std::string_view text) { out += text; }});
      EXPECT_TRUE(session.set_option("quiet"));
      ProgramSource source;
      source.text = program;
      const auto compiled = session.compile(source);
      EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
      if (!compiled) return out;
      EXPECT_TRUE(session.enable(*compiled));
      EXPECT_TRUE(session.go());
      for (int round = 0; round < 3; ++round) {
        for (malloc_type* type : {&a, &b}) {
          for (const std::size_t size : {64U, 1000U}) {
            kern_free(kern_malloc(size, type, kM_WAITOK), type);
          }
        }
        if (round == 1) session.work();
      }
      session.stop();
    }
    kernel.cpus().unbind();
    return out;
  }
};

// REQ: LAW-13
// The same answers whether a clause is quick or, because it also stores, is interpreted.
TEST_F(QuickRun, AggregatesAsTheInterpreterDoes) {
  for (const char* statement :
       {"@ = count();", "@[probefunc] = count();", "@[args[0]] = count();",
        "@[stringof(args[0]->ks_shortdesc)] = count();", "@[arg3] = count();",
        "@[stringof(args[0]->ks_shortdesc), arg3] = sum(arg3);", "@ = quantize(arg3);",
        "@[arg3] = quantize(arg3);", "@[tid, cpu] = count();", "@[pid, arg3] = sum(tid);",
        "@[uid] = max(timestamp);", "@[arg3, arg4, tid] = count();", "@ = sum(x);",
        "@[probefunc, probename] = max(arg3);", "@ = quantize(arg3, arg3 > 100 ? 2 : 1);",
        "@a = count(); @b[arg3] = avg(arg3); @c = stddev(arg3);"}) {
    for (const char* predicate : {"", "/arg3 > 64/", "/arg3 != 64 && arg4 > 0/", "/arg3 > 5000/",
                                  "/tid > 0 && x == 3/", "/x == 4/"}) {
      const std::string head = std::string("BEGIN {x = 3;} dtmalloc:::malloc ") + predicate;
      const std::string quick = of(head + " {" + statement + "}");
      EXPECT_EQ(quick, of(head + " {" + statement + " unused = timestamp;}"))
          << predicate << statement;
    }
  }
}

TEST_F(QuickRun, RecordsAsTheInterpreterDoes) {
  for (const char* statement :
       {"trace(arg3);", "trace(arg3); trace(arg4);", "trace(arg4); trace(arg3);",
        "trace(arg3); trace(arg3);", "trace((char)arg3);", "trace((short)arg4); trace((int)arg3);",
        "printf(\"%d %d %d %d\\n\", arg3, tid, pid, id);", "printf(\"here\\n\");",
        "printf(\"%p %p %x\\n\", arg0, args[1], epid);", "printf(\"%d\\n\", x);",
        "printf(\"%d %d %Y\\n\", timestamp, cpu, walltimestamp);",
        "printf(\"%d %d %d %d\\n\", ppid, uid, gid, vtimestamp);",
        "@[arg3] = count(); trace(arg3); @s = sum(arg3);", "trace(arg3); @[arg3] = count();",
        "trace(1); trace((char)2); trace(3);", ""}) {
    for (const char* predicate : {"", "/arg3 > 64/", "/x == 3/"}) {
      const std::string head = std::string("BEGIN {x = 3;} dtmalloc:::malloc ") + predicate;
      const std::string quick = of(head + " {" + statement + "}");
      EXPECT_EQ(quick, of(head + " {" + statement + " unused = timestamp;}"))
          << predicate << statement;
    }
  }
}

// REQ: LAW-13
// Each run of whole arguments has a writer of its own, once the clause has fired on a CPU.
TEST(Quick, RecordsAnyRunOfArguments) {
  CpuSet cpus{SmpConfig{.count = 1}};
  AddressMap addresses;
  FakeProvider provider;
  provider.types.assign(5, "int64_t");
  Framework framework{cpus, addresses};
  framework.load_standard_providers();
  ASSERT_EQ(framework.register_provider("fake", kFakeAttributes, 0, &provider, &provider.id), 0);
  const ProbeId probe = framework.probe_create(provider.id, "m", "f", "p", 0, nullptr);
  cpus.bind(0);
  for (const std::string predicate : {"", "/arg0 != 20/"}) {
    for (std::uintptr_t first = 0; first < 5; ++first) {
      for (std::uintptr_t last = first; last < 5; ++last) {
        std::string out, expected;
        const auto print = [&](std::string_view text) { out += text; };
        Session session(framework, {print, print});
        ASSERT_TRUE(session.set_option("quiet"));
        std::string format, arguments;
        for (std::uintptr_t i = first; i <= last; ++i) {
          format += "%d ";
          arguments += ", arg" + std::to_string(i);
        }
        ProgramSource source;
        source.text = "fake:::p " + predicate + " {printf(\"" + format + "\"" + arguments + ");}";
        const auto program = session.compile(source);
        ASSERT_TRUE(program) << program.error().message;
        ASSERT_TRUE(session.enable(*program));
        ASSERT_TRUE(session.go());
        for (const std::uintptr_t base : {10U, 20U, 30U}) {
          {
            const CriticalSection section;
            Framework::probe_fire(probe, base, base + 1, base + 2, base + 3, base + 4);
          }
          if (base == 20 && !predicate.empty()) continue;
          for (std::uintptr_t i = first; i <= last; ++i) expected += std::to_string(base + i) + " ";
        }
        session.stop();
        EXPECT_EQ(out, expected + "\n") << source.text;  // stop() ends the line
      }
    }
  }
  cpus.unbind();
}

// What a CPU knows of a clause does not outlive the tracing.
TEST_F(QuickRun, NothingBehindExitRuns) {
  const std::string out =
      of("dtmalloc::aa:malloc {@a = count();} dtmalloc::aa:malloc /arg3 == 1024 && n++ == 1/ "
         "{exit(0);} dtmalloc::aa:malloc {@b = sum(2);} END {printa(\"%@d \", @a); printa(@b);}");
  EXPECT_EQ(out, "4 \n                6\n\n");
}

// Records of a full buffer are dropped, and a clause that finds no room does not aggregate either.
TEST_F(QuickRun, DropsAsTheInterpreterDoes) {
  const std::string head = "#pragma D option bufsize=64\ndtmalloc:::malloc {@ = count(); ";
  const std::string quick = of(head + "trace(arg3);}");
  EXPECT_NE(quick.find("drop"), std::string::npos) << quick;
  EXPECT_EQ(quick, of(head + "trace(arg3); unused = timestamp;}"));
}

// REQ: LAW-13
// A key without room in the buffer counts nowhere, and each of its firings is a drop.
TEST_F(QuickRun, DropsKeysAsTheInterpreterDoes) {
  std::string quick = "#pragma D option aggsize=512\n", interpreted = quick;
  for (int i = 0; i < 12; ++i) {
    const std::string clause = "dtmalloc:::malloc {@a" + std::to_string(i) + "[arg3] = count();";
    quick += clause + "}\n";
    interpreted += clause + " unused = timestamp;}\n";
  }
  EXPECT_EQ(of(quick), of(interpreted));
  EXPECT_NE(of(quick).find("aggregation drop"), std::string::npos) << of(quick);
}

}  // namespace
}  // namespace dtmalloc::dtrace
