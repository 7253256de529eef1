// SPDX-License-Identifier: BSD-2-Clause
// The sections of the sheet that no other file covers, at the user's edge.
#include <gtest/gtest.h>

#include <string>

#include "support/command.hpp"

namespace {

using dtmalloc::support::CommandLine;
using dtmalloc::support::Ran;

class DSheet : public CommandLine {
 protected:
  Ran d(const std::string& words) { return run("exec dtmalloc dtrace " + words); }
  std::string quiet(const std::string& program) {
    const Ran ran = d("-qn '" + program + "'");
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
};

// REQ: DSHEET-01
TEST_F(DSheet, RecordsHaveAHeaderAndAlignedData) {
  const std::string workload = "printf 'a = malloc 64 M_TEMP M_WAITOK\\n%.0s' 1 2 3 4 5 6 >w.wl; ";
  const std::string options = "dtmalloc run w.wl -q -x switchrate=100sec -x bufsize=";
  // 12 bytes, 4 of padding and 8 of data; 12 and 4.
  const Ran longs = run(workload + options + "72 -n 'dtmalloc::temp:malloc {trace(arg3)}'");
  EXPECT_EQ(longs.out, "646464\n");
  EXPECT_EQ(longs.err, "dtrace: 3 drops on CPU 0\n");
  const Ran ints = run(workload + options + "72 -n 'dtmalloc::temp:malloc {trace((int)arg3)}'");
  EXPECT_EQ(ints.out, "64646464\n");
  EXPECT_EQ(ints.err, "dtrace: 2 drops on CPU 0\n");
}

// REQ: DSHEET-02
TEST_F(DSheet, OperatorsBindAsInC) {
  EXPECT_EQ(quiet("BEGIN {printf(\"%d %d %d %d %d %d %d %d %d\", 1 + 2 * 3, 1 | 2 ^ 3 & 2, "
                  "0 || 1 ^^ 1 && 0, 2 << 1 + 1, 1 < 2 == 1, -2 * 3, !0 + 1, (uint8_t)300 + 1, "
                  "1 ? 2 : 0 ? 3 : 4); exit(0)}"),
            "7 1 1 8 1 -6 2 45 2\n");
  EXPECT_EQ(quiet("BEGIN {a = b = 3; c = 10; c -= 2 - 1; printf(\"%d %d %d %d\", a, c, 7 - 2 - 1, "
                  "16 / 4 / 2); exit(0)}"),
            "3 9 4 2\n");
}

// REQ: DSHEET-03
TEST_F(DSheet, ErrorsAreNamed) {
  const std::string more = "BEGIN {@ = llquantize(1, 10, 0, 3, 10); @ = llquantize(1, ";
  const std::string behind = " doesn't match previous declaration: expected ";
  std::string many = "int";
  for (int i = 1; i < 300; ++i) many += ", int";
  const struct {
    std::string program, tag, text;
  } rows[] = {
      {"BEGIN {trace(x);}", "D_IDENT_UNDEF", "failed to resolve x: Unknown variable name"},
      {"BEGIN {x = 1; x = \"s\";}", "D_OP_INCOMPAT",
       "operands have incompatible types: \"int\" = \"string\""},
      {"struct s {int a;}; BEGIN {trace(((struct s *)arg0)->x);}", "D_TYPE_MEMBER",
       "x is not a member of struct s"},
      {"BEGIN {$pid++;}", "D_OP_LVAL", "operator ++ requires modifiable lvalue as an operand"},
      {"BEGIN {trace($1);} 99999999999999999999", "D_MACRO_OFLOW",
       "macro argument $1 constant 99999999999999999999 results in integer overflow"},
      {"struct a {int x;}; struct b {int y;}; translator struct b < struct a *p > {y = p->x;}; "
       "BEGIN {print(xlate <struct b *>((struct a *)0))}",
       "D_PRINT_DYN", "print( ) may not be applied to a translated pointer"},
      {"provider p {probe n(" + many + ");}; BEGIN {}", "D_PROV_PRARGLEN",
       "probe n input prototype exceeds 255 parameters: 300 params used"},
      {"BEGIN {@ = llquantize(1, 10, 0, 70000, 10);}", "D_LLQUANT_HIGHVAL",
       "llquantize( ) argument #3 (high magnitude) must be an unsigned 16-bit quantity"},
      {"BEGIN {@ = llquantize(1, 10, 0, 3, 70000);}", "D_LLQUANT_NSTEPVAL",
       "llquantize( ) argument #4 (linear steps per magnitude) must be an unsigned 16-bit "
       "quantity"},
      {more + "100, 0, 3, 100);}", "D_LLQUANT_FACTORMATCH",
       "llquantize( ) factor (argument #1)" + behind + "10, found 100"},
      {more + "10, 1, 3, 10);}", "D_LLQUANT_LOWMATCH",
       "llquantize( ) low magnitude (argument #2)" + behind + "0, found 1"},
      {more + "10, 0, 4, 10);}", "D_LLQUANT_HIGHMATCH",
       "llquantize( ) high magnitude (argument #3)" + behind + "3, found 4"},
      {more + "10, 0, 3, 20);}", "D_LLQUANT_NSTEPMATCH",
       "llquantize( ) linear steps per magnitude (argument #4)" + behind + "10, found 20"},
  };
  for (const auto& row : rows) {
    const std::size_t argument = row.program.find("} 9");
    std::string words = "-x errtags -n \"$(cat <<'EOF'\n" + row.program.substr(0, argument) +
                        (argument == std::string::npos ? "" : "}") + "\nEOF\n)\"";
    if (argument != std::string::npos) words += row.program.substr(argument + 1);
    const Ran ran = d(words);
    EXPECT_EQ(ran.status, 1) << row.program;
    EXPECT_NE(ran.err.find("[" + row.tag + "] "), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(row.text + "\n"), std::string::npos) << ran.err;
  }
}

// REQ: DSHEET-04
TEST_F(DSheet, BeginIsTheFirstProbe) {
  const std::string stable =
      "\t\tIdentifier Names: Stable\n\t\tData Semantics:   Stable\n\t\tDependency Class: Common\n";
  EXPECT_EQ(d("-lvn BEGIN").out,
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
            "    1     dtrace                                                     BEGIN\n"
            "\n\tProbe Description Attributes\n" +
                stable + "\n\tArgument Attributes\n" + stable + "\n\tArgument Types\n\t\tNone\n\n");
  EXPECT_EQ(quiet("BEGIN {printf(\"%d %d %d\", arg0 != 0, arg1, arg4); exit(0)}"), "1 0 0\n");
}

// REQ: DSHEET-05
TEST_F(DSheet, DtmallocHasTwoProbesAType) {
  const Ran ran =
      run("printf 'type M_A \"a b\\tc\"\\n' >w.wl; dtmalloc list w.wl -n 'dtmalloc::a_b*:'");
  EXPECT_NE(ran.out.find("a_b_c malloc\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("a_b_c free\n"), std::string::npos) << ran.out;
  const Ran types = d("-lvn dtmalloc::temp:malloc");
  EXPECT_NE(types.out.find("\t\targs[0]: struct malloc_type *\n"
                           "\t\targs[1]: struct malloc_type_internal *\n"
                           "\t\targs[2]: struct malloc_type_stats *\n"
                           "\t\targs[3]: unsigned long\n\t\targs[4]: int\n\n"),
            std::string::npos)
      << types.out;
  EXPECT_NE(d("-qn 'dtmalloc:::malloc {trace(args[5]);}'")
                .err.find("index 5 is out of range for dtmalloc:::malloc args[ ]"),
            std::string::npos);
}

// REQ: DSHEET-06
TEST_F(DSheet, Traps) {
  const std::string heading = "CPU     ID                    FUNCTION:NAME\n";
  const std::string line = "  0      1                           :BEGIN ";
  EXPECT_EQ(d("-n 'BEGIN {x = 1;} BEGIN {@ = count();} BEGIN {} BEGIN {exit(0)}'").out,
            heading + line + "\n" + line + "\n\n                1\n");
  EXPECT_EQ(quiet("BEGIN {trace((char)-1); trace((short)-1); trace((int)-1); exit(0)}"),
            "25565535-1\n");
  EXPECT_NE(quiet("BEGIN {trace(\"\"); exit(0)}").find("         0: 00 00 00 00"),
            std::string::npos);
  EXPECT_EQ(quiet("int16_t y; BEGIN {y = -1; printf(\"%d \", y == 65535); z = (uint8_t)255 + 1; "
                  "printf(\"%d\", z); exit(0)}"),
            "1 256\n");
  EXPECT_EQ(quiet("BEGIN {this->t = 7; x = 1;} BEGIN {printf(\"%d\", this->t);} "
                  "BEGIN {exit(0)} BEGIN {printf(\"no\");} END {printf(\" end\"); exit(0)}"),
            "7 end\n");
  const Ran fault =
      d("-qn 'BEGIN {z[0] = 0;} BEGIN {y = 1; printf(\"gone\"); x = 5 / z[0];} "
        "BEGIN {printf(\"%d\", y); exit(0)}'");
  EXPECT_EQ(fault.out, "1\n");
  EXPECT_NE(fault.err.find("divide-by-zero in action #3"), std::string::npos) << fault.err;
  // Normalising divides the count, not the bar.
  EXPECT_NE(quiet("BEGIN {@ = quantize(8); normalize(@, 2); exit(0)}")
                .find("|@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 0        \n"),
            std::string::npos);
}

}  // namespace
