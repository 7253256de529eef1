// SPDX-License-Identifier: BSD-2-Clause
// Which expressions are constant for a probe, and what the others read.
#include "dtrace/dif/reads.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

DifReads reads(const std::string& expression) {
  testing::Compiled program("dtmalloc::temp:malloc { g = 1; this->l = 1; p = (char *)0; trace(" +
                            expression + "); }");
  EXPECT_TRUE(program.ok) << expression << ": " << program.error.message;
  if (!program.ok) return {};
  return reads_of(program.clause().actions.back().values[0].dif);
}

TEST(DifReads, NamesOfTheProbeAndConstantsAreConstantForAProbe) {
  for (const char* expression :
       {"1 + 2", "id", "epid", "probefunc", "strjoin(probefunc, probename)",
        "probefunc == \"temp\"", "probefunc == \"temp\" || id > 4", "strlen(probemod)",
        "id == 4 ? \"a\" : \"b\""}) {
    EXPECT_TRUE(reads(expression).constant_for_probe()) << expression;
  }
}

TEST(DifReads, WhatMayChangeVaries) {
  for (const char* expression :
       {"g", "this->l", "timestamp", "execname", "stringof(tid)", "rand()", "g++", "*p",
        "stringof(arg0)", "strlen(stringof(arg0))", "*(long *)(arg0 + arg3)", "execname == \"a\"",
        "args[0]->ks_next->ks_version", "*(char *)(arg0 > 1 ? arg0 : arg1)"}) {
    EXPECT_TRUE(reads(expression).varies) << expression;
    EXPECT_FALSE(reads(expression).constant_for_probe()) << expression;
  }
}

TEST(DifReads, NumbersOfTheThreadAndTheCpuAreListed) {
  using Ids = std::vector<std::uint32_t>;
  const DifReads both = reads("tid + cpu");
  EXPECT_FALSE(both.varies);
  EXPECT_FALSE(both.constant_for_probe());
  EXPECT_EQ(both.builtins, (Ids{kVarTid, kVarCpu}));
  EXPECT_EQ(reads("strjoin(probefunc, lltostr(pid))").builtins, Ids{kVarPid});
}

TEST(DifReads, ArgumentsAndWhatIsReadBehindThem) {
  using Loads = std::vector<DifReads::Load>;
  const DifReads size = reads("arg3");
  EXPECT_FALSE(size.varies);
  EXPECT_FALSE(size.constant_for_probe());
  EXPECT_EQ(size.arguments, 8U);
  EXPECT_EQ(size.loads, Loads());
  const DifReads name = reads("stringof args[0]->ks_shortdesc");
  EXPECT_FALSE(name.varies);
  EXPECT_EQ(name.arguments, 1U);
  EXPECT_EQ(name.loads, (Loads{{0, 16, 8}}));
  const DifReads count = reads("args[2]->mts_numallocs");
  EXPECT_FALSE(count.varies);
  EXPECT_EQ(count.arguments, 4U);
  EXPECT_EQ(count.loads, (Loads{{2, 16, 8}}));
}

}  // namespace
}  // namespace dtmalloc::dtrace
