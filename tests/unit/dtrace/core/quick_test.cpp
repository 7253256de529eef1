// SPDX-License-Identifier: BSD-2-Clause
// Decision lists of expressions over probe arguments, against the interpreter; remembered keys.
#include "dtrace/core/quick.hpp"

#include <gtest/gtest.h>

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <string>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint32_t kPointers = 7;  // args[0] to args[2] of dtmalloc

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
                                 "arg3 > 16 ^^ arg4 > 2"}) {
    const Argument compiled(expression);
    const auto quick = QuickDif::of(compiled.dif(), kPointers);
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
  for (const char* expression : {"g++", "arg3 / arg4", "timestamp", "cpu", "*(int *)arg3", "arg0",
                                 "args[0]->ks_version", "arg3 + 1", "arg5", "rand()"}) {
    EXPECT_FALSE(QuickDif::of(Argument(expression).dif(), kPointers)) << expression;
  }
}

TEST(Quick, AKeyIsRememberedByItsArgumentsAndForgottenWhenMemoryChanges) {
  AddressMap map;
  static const char kText[] = "temp";
  map.add_data(kText, sizeof kText);
  QuickStep step;
  step.key_count = 2;
  step.key_arguments[0] = 0;
  step.key_arguments[1] = 3;
  QuickMemo memo;
  std::uint64_t arguments[5] = {7, 0, 0, 64, 0};
  EXPECT_FALSE(step.remembers(memo, arguments, map));
  step.remember(memo, arguments, map.generation());
  EXPECT_TRUE(step.remembers(memo, arguments, map));
  arguments[4] = 9;
  EXPECT_TRUE(step.remembers(memo, arguments, map));
  arguments[3] = 128;
  EXPECT_FALSE(step.remembers(memo, arguments, map));
  arguments[3] = 64;
  map.retire(kText);
  EXPECT_FALSE(step.remembers(memo, arguments, map));
  step.remember(memo, arguments, map.generation());
  map.restore(kText, sizeof kText);
  EXPECT_FALSE(step.remembers(memo, arguments, map));
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

// The same answers whether a clause is quick or, because it also stores, is interpreted.
TEST_F(QuickRun, AggregatesAsTheInterpreterDoes) {
  for (const char* statement :
       {"@ = count();", "@[probefunc] = count();", "@[args[0]] = count();",
        "@[stringof(args[0]->ks_shortdesc)] = count();", "@[arg3] = count();",
        "@[stringof(args[0]->ks_shortdesc), arg3] = sum(arg3);", "@ = quantize(arg3);",
        "@[probefunc, probename] = max(arg3);", "@ = quantize(arg3, arg3 > 100 ? 2 : 1);",
        "@a = count(); @b[arg3] = avg(arg3); @c = stddev(arg3);"}) {
    for (const char* predicate : {"", "/arg3 > 64/", "/arg3 != 64 && arg4 > 0/", "/arg3 > 5000/"}) {
      const std::string head = std::string("dtmalloc:::malloc ") + predicate;
      const std::string quick = of(head + " {" + statement + "}");
      EXPECT_EQ(quick, of(head + " {" + statement + " unused = timestamp;}"))
          << predicate << statement;
    }
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
