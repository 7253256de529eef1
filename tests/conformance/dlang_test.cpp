// SPDX-License-Identifier: BSD-2-Clause
// What D expressions mean: types, ranks, constants, strings, pointers, args[], actions.
#include <gtest/gtest.h>

#include <limits>

#include "dtrace/lang/lang_int.hpp"
#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;
using testing::trace;
using testing::Traced;

constexpr std::uint64_t kMinus1 = ~std::uint64_t{0};

struct Row {
  const char* statements;
  const char* expression;
  std::uint64_t bits;  // the whole register
  const char* type;
};

void expect_rows(const Row* begin, const Row* end) {
  for (const Row* row = begin; row != end; ++row) {
    const Traced got = trace(row->expression, row->statements);
    EXPECT_TRUE(got.compiled) << row->expression << ": " << got.error;
    EXPECT_EQ(got.fault, Fault::none) << row->expression;
    EXPECT_EQ(got.bits, row->bits) << row->statements << " " << row->expression;
    EXPECT_EQ(got.type, row->type) << row->expression;
  }
}
template <std::size_t N>
void expect_rows(const Row (&rows)[N]) {
  expect_rows(rows, rows + N);
}

TEST(DLanguage, TypesConstants) {
  // REQ: DLANG-04 DLANG-05
  constexpr Row kRows[] = {
      {"", "4294967295", 4294967295, "long"},
      {"", "2147483647", 2147483647, "int"},
      {"", "2147483648", 2147483648, "long"},
      {"", "0xffffffff", 4294967295, "unsigned int"},
      {"", "0x8000000000000000", std::uint64_t{1} << 63, "unsigned long"},
      {"", "037777777777", 4294967295, "unsigned int"},
      {"", "1u", 1, "unsigned int"},
      {"", "1l", 1, "long"},
      {"", "1UL", 1, "long"},  // only a lower-case u restricts
      {"", "1ul", 1, "unsigned long"},
      {"", "1ull", 1, "unsigned long long"},
      {"", "1LL", 1, "long long"},
      {"", "'a'", 97, "int"},
      {"", "'\\n'", 10, "int"},
      {"", "'\\101'", 65, "int"},
      {"", "'\\x41'", 65, "int"},
      {"", "'ab'", 0x6162, "int"},
      {"", "'abcdefgh'", 0x6162636465666768, "long"},
      {"", "NULL", 0, "long"},
      {"", "DTRACEFLT_BADSTACK", 9, "int"},
      {"", "sizeof (int)", 4, "size_t"},
      {"", "sizeof (string)", 256, "size_t"},
      {"", "sizeof (\"abc\")", 4, "size_t"},
      {"", "sizeof execname", 256, "size_t"},
      {"", "sizeof (struct malloc_type)", 112, "size_t"},
      {"", "sizeof (args[0])", 8, "size_t"},
      {"", "sizeof (*args[0])", 112, "size_t"},
      {"", "sizeof (char [10])", 10, "size_t"},
      {"", "offsetof (struct malloc_type, ks_shortdesc)", 16, "size_t"},
  };
  expect_rows(kRows);
}

// Every operator on every pair of integer types: result type by rank, signedness of the operation.
TEST(DLanguage, ChoosesOperationsByRank_ForEveryPairOfTypes) {
  // REQ: DLANG-10
  struct IntegerType {
    const char* name;
    unsigned bits;
    bool is_signed;
  };
  constexpr IntegerType kTypes[] = {{"char", 8, true},   {"unsigned char", 8, false},
                                    {"short", 16, true}, {"unsigned short", 16, false},
                                    {"int", 32, true},   {"unsigned int", 32, false},
                                    {"long", 64, true},  {"unsigned long", 64, false}};
  for (const IntegerType& left : kTypes) {
    for (const IntegerType& right : kTypes) {
      const unsigned left_rank = left.bits + (left.is_signed ? 0 : 1);
      const unsigned right_rank = right.bits + (right.is_signed ? 0 : 1);
      const IntegerType& winner = left_rank >= right_rank ? left : right;
      // Both variables keep all 64 bits of -8 and 3.
      const std::string setup = std::string("a = (") + left.name + ")1; b = (" + right.name +
                                ")1; a = arg4 - 7; b = arg4 + 4";
      const std::uint64_t a = static_cast<std::uint64_t>(-8);
      const std::uint64_t b = 3;
      const auto check = [&](const char* op, std::uint64_t bits, const char* type) {
        const std::string expression = std::string("a ") + op + " b";
        const Traced got = trace(expression, setup);
        ASSERT_TRUE(got.compiled) << got.error;
        EXPECT_EQ(got.bits, bits) << left.name << " " << op << " " << right.name;
        EXPECT_EQ(got.type, type) << left.name << " " << op << " " << right.name;
      };
      const bool is_signed = winner.is_signed;
      check("+", a + b, winner.name);
      check("-", a - b, winner.name);
      check("*", a * b, winner.name);
      check("/", is_signed ? static_cast<std::uint64_t>(-2) : a / b, winner.name);
      check("%", is_signed ? static_cast<std::uint64_t>(-2) : a % b, winner.name);
      check("&", a & b, winner.name);
      check("|", a | b, winner.name);
      check("^", a ^ b, winner.name);
      check("<<", a << b, left.name);
      check(">>", left.is_signed ? kMinus1 : a >> b, left.name);
      check("<", is_signed ? 1 : 0, "int");
      check("<=", is_signed ? 1 : 0, "int");
      check(">", is_signed ? 0 : 1, "int");
      check(">=", is_signed ? 0 : 1, "int");
      check("==", 0, "int");
      check("!=", 1, "int");
      check("&&", 1, "int");
      check("||", 1, "int");
      check("^^", 0, "int");
    }
  }
}

TEST(DLanguage, TruncatesOnlyWhereAskedTo) {
  // REQ: DLANG-11 DLANG-12
  constexpr Row kRows[] = {
      {"x = 1; x = 2147483647 + arg3", "x", 2147483647 + 4096UL, "int"},
      {"x = (int16_t)1; x = -1", "x", 65535, "int16_t"},
      {"x = (int16_t)1; x = arg4", "x", kMinus1, "int16_t"},
      {"x = (uint32_t)1; x = -1", "x", 4294967295, "uint32_t"},
      {"x = 1; x = -1", "x", kMinus1, "int"},
      {"", "(int8_t)-1 < 0", 0, "int"},
      {"", "(int8_t)-1", 255, "int8_t"},
      // A cast to a wider type extends the sign of the type it widens, as when the clause runs.
      {"", "(long)(int)0xffffffff", kMinus1, "long"},
      {"x = (int)arg4", "(long)(int)x", kMinus1, "long"},
      {"", "(long)0xffffffff", 4294967295, "long"},
      {"", "(uint64_t)(int8_t)-1", kMinus1, "uint64_t"},
      {"", "(int)(int8_t)-1", 4294967295, "int"},  // zero-extended beyond the new type
      {"", "(long)(uint8_t)-1", 255, "long"},
      {"", "(long)-1", kMinus1, "long"},
      {"", "-8 >> 1", (kMinus1 - 7) >> 1, "int"},
      {"x = -8", "x >> 1", static_cast<std::uint64_t>(-4), "int"},
      {"", "(int8_t)arg3", 0, "int8_t"},
      {"x = 200", "(int8_t)x", static_cast<std::uint64_t>(-56), "int8_t"},
      {"x = 200", "(uint8_t)x", 200, "uint8_t"},
      {"", "(uint8_t)arg4", 255, "uint8_t"},
      {"", "(uint32_t)arg4", 4294967295, "uint32_t"},
      {"", "(int)arg4", kMinus1, "int"},
      {"", "(uint16_t)(arg4 - 1)", 65534, "uint16_t"},
      {"x = 2147483647", "x + 1", 2147483648, "int"},
      {"", "~0", kMinus1, "int"},
      {"", "!5", 0, "int"},
      {"", "-(2147483647 + 1)", static_cast<std::uint64_t>(-2147483648LL), "int"},
  };
  expect_rows(kRows);
}

TEST(DLanguage, EvaluatesInOrder) {
  // REQ: DLANG-14
  constexpr Row kRows[] = {
      {"x = 0", "(0 && ++x) + x", 0, "int"},
      {"x = 0", "(pid && ++x) * 10 + x", 11, "int"},
      {"x = 0", "(pid || ++x) * 10 + x", 10, "int"},
      {"x = 0", "(pid ^^ ++x) * 10 + x", 1, "int"},
      {"x = 0; y = 0", "(pid ? (x = 1) : (y = 1), x * 10 + y)", 10, "int"},
      {"x = 5", "x++ * 10 + x", 56, "int"},
      {"x = 5", "++x * 10 + x", 66, "int"},
      {"x = 5", "x-- - --x", 2, "int"},
      {"x = y = 3", "x + y", 6, "int"},
      {"x = 7; x <<= 2; x |= 1; x ^= 3; x -= 2; x /= 3; x %= 5; x *= 9; x &= 14; x >>= 1; x += 4",
       "x", 6, "int"},
      {"", "1 ? 2 : 3", 2, "int"},
      {"", "pid == 4711 && tid == 100042", 1, "int"},
      {"", "2 + 3 * 4 - 8 / 2 % 3 << 1 | 1", 27, "int"},
      {"++fresh", "fresh", 1, "int64_t"},
      {"fresh += 5", "fresh", 5, "int64_t"},
      {"this->x = 5; this->x++", "this->x", 6, "int"},
  };
  expect_rows(kRows);
}

TEST(DLanguage, ComparesStringsByContent) {
  // REQ: DLANG-15 DLANG-19
  constexpr Row kRows[] = {
      {"", "execname == \"newsyslog\"", 1, "int"},
      {"", "execname != \"newsyslog\"", 0, "int"},
      {"", "\"abc\" < \"abd\"", 1, "int"},
      {"", "\"abc\" < \"ab\"", 0, "int"},
      {"", "\"\\377\" > \"a\"", 1, "int"},
      {"", "\"a\" <= \"a\"", 1, "int"},
      {"", "stringof args[0]->ks_shortdesc == \"temp\"", 1, "int"},
      {"", "args[0]->ks_shortdesc == \"temp\"", 1, "int"},
      {"", "(string)args[0]->ks_shortdesc == probefunc", 1, "int"},
      {"", "args[0]->ks_shortdesc == args[0]->ks_shortdesc", 1, "int"},
      {"", "probefunc == NULL", 0, "int"},
      {"t = \"x\"; t = NULL", "t == \"\"", 1, "int"},
      {"t = \"x\"; t = NULL", "t == NULL", 1, "int"},
      {"t = \"x\"; t = \"yy\"", "strlen(t)", 2, "size_t"},
      {"", "execname[0]", 'n', "char"},
      {"", "\"abc\"[1]", 'b', "char"},
      {"", "strlen(\"abc\" + 1)", 2, "size_t"},
  };
  expect_rows(kRows);
  EXPECT_EQ(trace("pid ? \"yes\" : \"no\"").text, "yes");
  EXPECT_EQ(trace("stringof args[0]->ks_shortdesc").text, "temp");
  EXPECT_EQ(trace("t", "t = \"x\"; t = NULL").fault, Fault::badaddr);
  // A variable keeps strsize bytes, without a NUL when they are full.
  EXPECT_EQ(trace("t", "t = \"abcdefghijkl\"", 8).text, "abcdefgh");
  const Traced text = trace("execname");
  EXPECT_TRUE(text.desc.is_string);
  EXPECT_TRUE(text.desc.by_ref);
  EXPECT_EQ(text.desc.size, 256U);
}

TEST(DLanguage, ReadsMemoryThroughPointers) {
  // REQ: DLANG-16 DLANG-27
  constexpr Row kRows[] = {
      {"", "args[0]->ks_version", 20200804, "unsigned long"},
      {"", "(*args[0]).ks_version", 20200804, "unsigned long"},
      {"", "args[2]->mts_memalloced - args[2]->mts_memfreed", 3072, "uint64_t"},
      {"", "((uint64_t *)arg2)[2]", 7, "uint64_t"},
      {"", "*((uint64_t *)arg2 + 3)", 3, "uint64_t"},
      {"", "*(uint64_t *)&args[2]->mts_size", 0x11, "uint64_t"},
      {"", "*(char *)args[0]->ks_shortdesc", 't', "char"},
      {"", "args[0]->ks_shortdesc[3]", 'p', "char"},
      {"", "*(args[0]->ks_shortdesc + 1)", 'e', "char"},
      {"", "(args[0]->ks_shortdesc + 3) - args[0]->ks_shortdesc", 3, "ptrdiff_t"},
      {"", "((int *)32 - (int *)16)", 4, "ptrdiff_t"},
      {"", "(uint64_t)((int *)32 + 2)", 40, "uint64_t"},
      {"", "(uint64_t)((int *)32 - 2)", 24, "uint64_t"},
      {"p = (int *)16; p++; p += 2", "(uint64_t)p", 28, "uint64_t"},
      {"", "args[0]->ks_next == NULL", 1, "int"},
      {"", "args[0] == NULL", 0, "int"},
      {"", "*(uint8_t *)arg2", 0, "uint8_t"},
      {"", "*(uint16_t *)(arg2 + 1)", 0x10, "uint16_t"},
  };
  expect_rows(kRows);
  const auto fault = [](const char* expression) {
    const Traced got = trace(expression);
    EXPECT_TRUE(got.compiled) << got.error;
    return std::pair(got.fault, got.fault_address);
  };
  EXPECT_EQ(fault("*(int *)0"), std::pair(Fault::badaddr, std::uint64_t{0}));
  EXPECT_EQ(fault("args[0]->ks_next->ks_version"), std::pair(Fault::badaddr, std::uint64_t{8}));
  EXPECT_EQ(fault("stringof arg1"), std::pair(Fault::badaddr, std::uint64_t{16}));
  EXPECT_EQ(fault("*(int *)0x10"), std::pair(Fault::badaddr, std::uint64_t{16}));
  EXPECT_EQ(fault("*(int *)4 = 1"), std::pair(Fault::badaddr, std::uint64_t{4}));
  EXPECT_EQ(fault("*(int *)5 = 1"), std::pair(Fault::badalign, std::uint64_t{5}));
  EXPECT_EQ(fault("*(uint64_t *)arg2 = 1").first, Fault::badaddr);
}

TEST(DLanguage, FaultsAtTheOffsetOfTheRealCode) {
  // REQ: DLANG-27: the example of 17.3, `at DIF offset 16`.
  for (const char* expression : {"*(int *)0", "*(char *)NULL"}) {
    const Traced got = trace(expression);
    EXPECT_EQ(got.fault, Fault::badaddr) << expression;
    EXPECT_EQ(got.fault_offset, 16) << expression;
  }
}

TEST(DLanguage, DividesAsTheMachineDoes) {
  // REQ: DLANG-13
  constexpr Row kRows[] = {
      {"x = (long)1; x = arg4; x <<= 63", "x / arg4", std::uint64_t{1} << 63, "long"},
      {"x = (long)1; x = arg4; x <<= 63", "x % arg4", 0, "long"},
      {"x = -7", "x / 2", static_cast<std::uint64_t>(-3), "int"},
      {"x = -7", "x % 2", kMinus1, "int"},
      {"", "(-9223372036854775807 - 1) / -1", std::uint64_t{1} << 63, "long"},
  };
  expect_rows(kRows);
  for (const char* expression : {"1 / (pid - 4711)", "1 % (pid - 4711)", "x /= pid - 4711",
                                 "x %= pid - 4711", "1u / (uint32_t)(pid - 4711)"}) {
    EXPECT_EQ(trace(expression, "x = 1").fault, Fault::divzero) << expression;
  }
}

TEST(DLanguage, TypesProbeArguments) {
  // REQ: DLANG-18
  constexpr Row kRows[] = {
      {"", "args[3]", 4096, "unsigned long"},
      {"", "args[4]", kMinus1, "int"},
      {"", "args[4] == -1", 1, "int"},
      {"", "arg4", kMinus1, "int64_t"},
      {"", "arg9", 0, "int64_t"},
  };
  expect_rows(kRows);
  EXPECT_EQ(trace("args[0]").type, "struct malloc_type *");
  EXPECT_FALSE(trace("args[0]").desc.is_signed);
  EXPECT_EQ(trace("args[4]").desc.size, 4U);
  // Module and function of dtmalloc are private, so they may be left open; name and provider not.
  EXPECT_TRUE(Compiled("dtmalloc:::malloc { trace(args[3]); }").ok);
  EXPECT_TRUE(Compiled("dtmalloc::*e*:malloc { trace(args[3]); }").ok);
  EXPECT_EQ(Compiled("dtmalloc::: { trace(args[3]); }").tag(), "D_ARGS_MULTI");
  EXPECT_EQ(Compiled("dtmalloc:::m* { trace(args[3]); }").tag(), "D_ARGS_MULTI");
  EXPECT_EQ(Compiled("dtmalloc*:::malloc { trace(args[3]); }").tag(), "D_ARGS_MULTI");
  EXPECT_EQ(Compiled("shaky:::entry { trace(args[0]); }").tag(), "D_ARGS_MULTI");
  EXPECT_TRUE(Compiled("shaky::f:entry { trace(args[0]); }").ok);
  EXPECT_TRUE(Compiled("4 { trace(args[0]); }").ok);
}

TEST(DLanguage, ReadsDescriptionsFromTheRight) {
  // REQ: DLANG-01 DLANG-02 DLANG-32
  struct DescriptionRow {
    const char* text;
    SpecContext context;
    const char* result;
  };
  constexpr DescriptionRow kRows[] = {
      {"x", SpecContext::name, ":::x"},
      {"a:b", SpecContext::name, "::a:b"},
      {"a:b:c", SpecContext::name, ":a:b:c"},
      {"a:b:c:d", SpecContext::name, "a:b:c:d"},
      {"dtmalloc:::malloc", SpecContext::name, "dtmalloc:::malloc"},
      {"dtmalloc::80211node:malloc", SpecContext::name, "dtmalloc::80211node:malloc"},
      {":::", SpecContext::name, ":::"},
      {"read", SpecContext::function, "::read:"},
      {"::read", SpecContext::function, "::read:"},
      {"read:", SpecContext::function, ":read::"},
      {"m", SpecContext::module, ":m::"},
      {"p:m", SpecContext::module, "p:m::"},
      {"p", SpecContext::provider, "p:::"},
      {"-3", SpecContext::name, ":::-3"},
  };
  for (const DescriptionRow& row : kRows) {
    const auto parsed = parse_description(row.text, row.context);
    ASSERT_TRUE(parsed) << row.text;
    EXPECT_EQ(to_string(*parsed), row.result) << row.text;
  }
  EXPECT_EQ(parse_description("12", SpecContext::name)->id, 12U);
  EXPECT_EQ(parse_description("4", SpecContext::function).error().message,
            "probe identifier 4 not permitted when specifying functions");
  EXPECT_FALSE(parse_description("a:b", SpecContext::provider));
  EXPECT_EQ(Compiled("4.56", "", SpecContext::function).message(),
            "probe identifier 4 not permitted when specifying functions");
  Compiled list("dtmalloc::temp:malloc, dtmalloc::t*:free,\nEND { trace(1); }");
  ASSERT_TRUE(list.ok) << list.message();
  ASSERT_EQ(list.output.program.clauses.size(), 3U);
  EXPECT_EQ(to_string(list.clause(1).description), "dtmalloc::t*:free");
  EXPECT_EQ(list.clause(2).where.line, 2U);
  Compiled macro("BEGIN {}");
  macro.input.text = "dtmalloc::$1:mal$2 { }";
  macro.input.arguments = {"dtrace", "temp", "loc"};
  EXPECT_TRUE(macro.compile()) << macro.message();
  EXPECT_EQ(to_string(macro.clause().description), "dtmalloc::temp:malloc");
}

TEST(DLanguage, MatchesOnlyAtTheLevelAsked) {
  // REQ: DLANG-03
  Compiled program("BEGIN {}");
  program.input.text = "nothing {}";
  program.input.allow_zero_matches = true;
  EXPECT_TRUE(program.compile());
  EXPECT_EQ(to_string(program.clause().description), ":::nothing");
}

TEST(DLanguage, TellsPredicatesFromDivisions) {
  // REQ: DLANG-06
  for (const char* text : {"BEGIN /1/ {}", "BEGIN /10 / 2/ {}",
                           "BEGIN / pid / 2 == 1 / { x = 4 / 2; }", "BEGIN\n/1/\n{}\nEND {}",
                           "BEGIN /pid/ /* why */ {}", "BEGIN /(1) / 2/{ x = 8; x /= 2; }"}) {
    EXPECT_TRUE(Compiled(text).ok) << text << Compiled(text).message();
  }
}

TEST(DLanguage, SubstitutesMacroArguments) {
  // REQ: DLANG-07
  Compiled program("BEGIN {}");
  program.input.arguments = {"script.d", "-12",       "0x10",
                             "text",     "probefunc", "99999999999999999999"};
  program.input.macros = {{"pid", 4711}};
  program.input.argref = true;
  program.input.text =
      "BEGIN { trace($1); trace($2 + 1); trace($$3); trace($4); trace($pid); trace($$pid); "
      "trace($$0); }";
  EXPECT_TRUE(program.compile()) << program.message();
  program.input.text = "BEGIN { trace($3); }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.message(), "in action list: failed to resolve text: Unknown variable name");
  program.input.text = "BEGIN { trace($5); }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.message(),
            "in action list: macro argument $5 constant 99999999999999999999 results in integer "
            "overflow");
  program.input.text = "BEGIN { $pid++; }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_OP_LVAL");  // REQ: DLANG-17
  program.input.text = "BEGIN { trace($9); trace($$9); }";
  program.input.defaultargs = true;
  EXPECT_TRUE(program.compile()) << program.message();
}

TEST(DLanguage, CountsActions) {
  // REQ: DLANG-22
  Compiled program(
      "dtmalloc::temp:malloc { x = 1; printf(\"hi\"); printf(\"%*d %s\", 1, 2, \"x\"); "
      "@[1, 2] = count(); @q = quantize(1, 2); trace(1); @s = sum(1); printa(@s, @q2); }");
  EXPECT_EQ(program.tag(), "D_PRINTA_AGGBAD");
  program.input.text =
      "dtmalloc::temp:malloc { x = 1; printf(\"hi\"); printf(\"%*d %s\", 1, 2, \"x\"); "
      "@[1, 2] = count(); @q = quantize(1, 2); @s = sum(1); printa(@s, @q); trunc(@s); "
      "normalize(@s, 2); clear(@s); exit(0); }";
  ASSERT_TRUE(program.compile()) << program.message();
  const std::uint32_t expected[] = {1, 2, 3, 6, 10, 13, 15, 17, 19, 21, 22};
  const std::vector<Action>& actions = program.clause().actions;
  ASSERT_EQ(actions.size(), std::size(expected));
  for (std::size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(actions[i].first_index, expected[i]) << i;
  }
  EXPECT_EQ(actions[2].values.size(), 3U);
  EXPECT_TRUE(actions[2].format->conversions[0].width_arg);
}

TEST(DLanguage, TakesAggregationsAsTheyAreDeclared) {
  // REQ: DLANG-21
  Compiled program(
      "dtmalloc::temp:malloc { @ = count(); @a[probefunc, arg3] = sum(arg3); "
      "@b = lquantize(args[3], 0, 2048, 64); @c = llquantize(arg3, 10, 0, 6, 20); "
      "@d = quantize(arg3, -arg4); @e = avg(arg3); @f = stddev(arg3); @g = min(arg3); "
      "@h = max(arg3); @i = lquantize(arg3, -10, 10); }");
  ASSERT_TRUE(program.ok) << program.message();
  const std::vector<AggregationDesc>& all = program.space.aggregations;
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(all[0].name, "_");
  EXPECT_EQ(all[0].id, 1U);
  EXPECT_EQ(all[1].keys.size(), 2U);
  EXPECT_TRUE(all[1].keys[0].is_string);
  EXPECT_EQ(all[1].keys[1].size, 8U);
  EXPECT_EQ(all[2].limit, 2048);
  EXPECT_EQ(all[2].step, 64);
  EXPECT_EQ(all[3].nsteps, 20);
  EXPECT_EQ(all[9].base, -10);
  EXPECT_TRUE(program.clause().actions[4].increment);
  EXPECT_FALSE(program.clause().actions[0].argument);
  // A later program uses the same ones; a refused program leaves nothing behind.
  program.input.text = "END { @new = count(); @a[1] = sum(1); }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.space.aggregations.size(), 10U);
  program.input.text = "END { printa(\"%s %d %@d\\n\", @a); trunc(@a, 5); x = 1; }";
  EXPECT_TRUE(program.compile()) << program.message();
}

TEST(DLanguage, DefinesVariablesByFirstAssignment) {
  // REQ: DLANG-31
  Compiled program("BEGIN /x > 0 && this->y == 2/ { x = 1; this->y = 2; t = \"text\"; }");
  ASSERT_TRUE(program.ok) << program.message();
  ASSERT_EQ(program.space.variables.size(), 3U);
  EXPECT_EQ(program.space.globals, 2U);
  EXPECT_EQ(program.space.locals, 1U);
  EXPECT_EQ(program.space.variables[0].id, kVarUser);
  EXPECT_EQ(program.space.variables[1].id, kVarUser);
  EXPECT_EQ(program.space.variables[2].id, kVarUser + 1);
  EXPECT_TRUE(program.space.variables[2].value.is_string);
  EXPECT_TRUE(program.clause().predicate);
  EXPECT_EQ(Compiled("BEGIN /x/ {} END { x = 1; }").tag(), "D_IDENT_UNDEF");
}

TEST(DLanguage, ChecksConversions) {
  // REQ: DLANG-20
  struct ConversionRow {
    const char* conversion;
    const char* accepted;  // expressions, by commas
    const char* refused;
  };
  constexpr ConversionRow kRows[] = {
      {"%d", "(char)1,(short)1,1,1ul,1ll", "\"x\",args[0]"},
      {"%i", "1,arg0", "\"x\""},
      {"%hd", "(short)1", "1,(unsigned short)1"},
      {"%hu", "(unsigned short)1", "(short)1"},
      {"%ld", "1l,1ll,(int64_t)1", "1,1ul"},
      {"%lu", "1ul,1ull", "1l"},
      {"%lld", "1l,1ll", "1ull"},
      {"%hx", "(short)1,(unsigned short)1", "1"},
      {"%lx", "1l,1ul,timestamp", "1ll,1"},
      {"%llx", "1ll,1ull", "1l"},
      {"%c", "(char)1,'a'", "1l"},
      {"%wc", "1", "(char)1"},
      {"%s", "\"x\",execname,stringof args[0]->ks_shortdesc", "args[0]->ks_shortdesc,1"},
      {"%S", "\"x\"", "1"},
      {"%p", "args[0],arg0,1", "\"x\""},
      {"%a", "arg0", "\"x\""},
      {"%Y", "walltimestamp,timestamp", "1"},
      {"%T", "walltimestamp", "1"},
      {"%P", "(uint16_t)1", "1"},
      {"%f", "", "1,\"x\""},
      {"%k", "", "1"},
      {"%-+ #0'8.3d", "1", "\"x\""},
      {"%?p", "args[0]", "\"x\""},
  };
  const auto compiles = [](const char* conversion, const std::string& argument) {
    return Compiled(std::string("dtmalloc::temp:malloc { printf(\"") + conversion + "\", " +
                    argument + "); }")
        .tag();
  };
  const auto each = [](std::string list, const auto& check) {
    while (!list.empty()) {
      const std::size_t comma = list.find(',');
      check(list.substr(0, comma));
      list = comma == std::string::npos ? "" : list.substr(comma + 1);
    }
  };
  for (const ConversionRow& row : kRows) {
    each(row.accepted, [&](const std::string& argument) {
      EXPECT_EQ(compiles(row.conversion, argument), "") << row.conversion << " " << argument;
    });
    each(row.refused, [&](const std::string& argument) {
      EXPECT_EQ(compiles(row.conversion, argument), "D_PRINTF_ARG_TYPE")
          << row.conversion << " " << argument;
    });
  }
}

TEST(DLanguage, RunsOutOfRegistersWhereTheMachineDoes) {
  // REQ: DLANG-24
  std::string nested = "pid";
  for (int i = 0; i < 6; ++i) nested = "pid + (" + nested + ")";
  EXPECT_TRUE(Compiled("BEGIN { trace(" + nested + "); }").ok);
  nested = "pid + (" + nested + ")";
  EXPECT_EQ(Compiled("BEGIN { trace(" + nested + "); }").tag(), "D_NOREG");
}

}  // namespace
}  // namespace dtmalloc::dtrace
