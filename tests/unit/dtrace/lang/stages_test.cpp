// SPDX-License-Identifier: BSD-2-Clause
// Each stage alone: tokens, trees, types, code, formats.
#include <gtest/gtest.h>

#include <chrono>

#include "dtrace/lang/lang_int.hpp"
#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;

std::string tokens(const std::string& text) {
  CompileInput input;
  input.text = text;
  const SourceText source(input);
  TypeTable types;
  Lexer lexer(input, source, types);
  std::string out;
  try {
    for (;;) {
      const Token token = lexer.next();
      if (token.kind == Tok::end) return out;
      out += (out.empty() ? "" : " | ") + dump(token);
    }
  } catch (const CompileError& error) {
    return out + " ! " + error.diagnostic.tag;
  }
}

TEST(DLexer, KnowsWhereItIs) {
  EXPECT_EQ(tokens("a:b-c / x / y / { -1; }"),
            "description a:b-c | predicate / | identifier x | op / | identifier y | end of "
            "predicate / | { | op - | integer 0x1 | ; | }");
  EXPECT_EQ(tokens("BEGIN,END{@a[1]=count()}tick-1s"),
            "description BEGIN | op , | description END | { | aggregation @a | [ | integer 0x1 | ] "
            "| op = | identifier count | ( | ) | } | description tick-1s");
  EXPECT_EQ(tokens("{ a <<= b >> c ->d ++ && !e ^^ @ }"),
            "{ | identifier a | op <<= | identifier b | op >> | identifier c | op -> | identifier "
            "d | op ++ | op && | op ! | identifier e | op ^^ | aggregation @_ | }");
  EXPECT_EQ(tokens("{ \"a\\tb\\x41\\101\\q\\\\\" }"), "{ | string \"a\tbAA\\q\\\" | }");
  EXPECT_EQ(tokens("#!/usr/sbin/dtrace\n/* c */ BEGIN\n#pragma D option quiet\n"),
            "description BEGIN");
  EXPECT_EQ(tokens("{ 0x7fUL 017 1ull string this }"),
            "{ | integer 0x7f | integer 0xf | integer 0x1 | keyword string | keyword this | }");
  EXPECT_EQ(
      tokens("int a[8 / 2], *b; int* c; uint8_t *d; a / x / {}"),
      "keyword int | identifier a | [ | integer 0x8 | op / | integer 0x2 | ] | op , | op * | "
      "identifier b | ; | keyword int | op * | identifier c | ; | identifier uint8_t | op * | "
      "identifier d | ; | description a | predicate / | identifier x | end of predicate / | "
      "{ | }");
  EXPECT_EQ(tokens("struct s { int x; }; int*:x {} uint8_t {}"),
            "keyword struct | identifier s | { | keyword int | identifier x | ; | } | ; | "
            "description int*:x | { | } | description uint8_t | { | }");
  EXPECT_EQ(tokens("{ # }"), "{ | no token | }");
  EXPECT_EQ(tokens(std::string("BEGIN { \0 }", 11)), "description BEGIN | { | no token | }");
}

std::string tree(const std::string& expression) {
  CompileInput input;
  input.text = "BEGIN { " + expression + "; }";
  const SourceText source(input);
  TypeTable types;
  Lexer lexer(input, source, types);
  ProgramSpace space;
  space.types = &types;
  Symbols symbols(space);
  try {
    const Ast ast = parse(input, source, lexer, space, symbols);
    return dump(*ast.clauses.at(0).statements.at(0), nullptr);
  } catch (const CompileError& error) {
    return error.diagnostic.tag;
  }
}

TEST(DParser, BindsByPrecedence) {
  EXPECT_EQ(tree("a = b = c"), "(= a (= b c))");
  EXPECT_EQ(tree("a + b * c - d"), "(- (+ a (* b c)) d)");
  EXPECT_EQ(tree("a || b ^^ c && d | e ^ f & g"), "(|| a (^^ b (&& c (| d (^ e (& f g))))))");
  EXPECT_EQ(tree("a == b < c << d + e"), "(== a (< b (<< c (+ d e))))");
  EXPECT_EQ(tree("a ? b : c ? d : e"), "(?: a b (?: c d e))");
  EXPECT_EQ(tree("a ? b, c : d"), "(?: a (, b c) d)");
  EXPECT_EQ(tree("-a[1].b->c++"), "(-_ (_++ (->c (.b ([] a 0x1)))))");
  EXPECT_EQ(tree("*&~!a"), "(*_ (&_ (~_ (!_ a))))");
  EXPECT_EQ(tree("sizeof a + 1"), "(+ (sizeof_ a) 0x1)");
  EXPECT_EQ(tree("stringof a->b == \"x\""), "(== (stringof_ (->b a)) \"x\")");
  EXPECT_EQ(tree("f(a, b)(c)"), "(call (call f a b) c)");
  EXPECT_EQ(tree("@a[b, c] = f()"), "(= (@a b c) (call f))");
  EXPECT_EQ(tree("this->x += 1"), "(+= this->x 0x1)");
  EXPECT_EQ(tree("a->probe"), "(->probe a)");
  EXPECT_EQ(tree("a +"), "D_SYNTAX");
  EXPECT_EQ(tree("(a"), "D_SYNTAX");
  EXPECT_EQ(tree("a b"), "D_SYNTAX");
  EXPECT_EQ(tree("@a[]"), "D_SYNTAX");
}

TEST(DParser, LimitsTheDepthOfTheTree) {
  const auto times = [](const char* text, std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += text;
    return out;
  };
  const std::string deep[] = {times("(", 100000) + "1" + times(")", 100000),
                              "1" + times("+1", 100000),
                              times("-", 100000) + "1",
                              times("1?", 100000) + "1",
                              times("x=", 100000) + "1",
                              times("a[", 100000) + "1",
                              times("f(", 100000) + "1",
                              times("@a[", 100000) + "1",
                              "x" + times(".a", 100000),
                              "x" + times("++", 100000),
                              times("sizeof ", 100000) + "1",
                              times("(int)", 100000) + "1",
                              times("stringof ", 100000) + "1",
                              times("sizeof (", 100000) + "1"};
  for (const std::string& text : deep) {
    EXPECT_EQ(tree(text), "D_SIM_NESTING") << text.substr(0, 20);
  }
  EXPECT_NE(tree("1" + times("+1", 900)), "D_SIM_NESTING");
  EXPECT_NE(tree(times("(", 300) + "1" + times(")", 300)), "D_SIM_NESTING");
}

TEST(DCodegen, IsShortForTheManualsExample) {
  const Compiled program("dtmalloc:::malloc {@[stringof args[0]->ks_shortdesc] = count()}");
  ASSERT_TRUE(program.ok) << program.message();
  const Action& action = program.clause().actions.at(0);
  EXPECT_EQ(action.kind, ActionKind::aggregate);
  EXPECT_EQ(disassemble(action.values.at(0).dif.object()),
            "OFF OPCODE      INSTRUCTION\n"
            "00: 25000001    setx DT_INTEGER[0], %r1\t\t! 0x0\n"
            "01: 28000101    ldga DT_VAR(0), %r1, %r1\t\t! DT_VAR(0) = \"args\"\n"
            "02: 25000102    setx DT_INTEGER[1], %r2\t\t! 0x10\n"
            "03: 07010201    add  %r1, %r2, %r1\n"
            "04: 22010101    ldx  [%r1], %r1\t\t! pointer\n"
            "05: 23000001    ret  %r1\n");
  EXPECT_TRUE(action.values[0].desc.is_string);
  EXPECT_NE(program.output.type_dump.find("ks_shortdesc ([] args 0x0:int):struct malloc_type *"),
            std::string::npos);
  EXPECT_NE(program.output.parse_dump.find("(call count)"), std::string::npos);
}

TEST(DFormats, SplitIntoConversions) {
  CompileInput input;
  const SourceText source(input);
  const auto parse = [&](const char* text) {
    return parse_format(source, Place{}, text, "printf");
  };
  const Format format = parse("a%-8.3lldb%%c%@*.*x%?p%s\n");
  ASSERT_EQ(format.conversions.size(), 6U);
  const Conversion& first = format.conversions[0];
  EXPECT_EQ(first.literal, "a");
  EXPECT_EQ(first.conversion, 'd');
  EXPECT_EQ(first.modifier, "ll");
  EXPECT_TRUE(first.left);
  EXPECT_EQ(first.width, 8);
  EXPECT_EQ(first.precision, 3);
  EXPECT_EQ(format.conversions[1].literal, "b");
  EXPECT_EQ(format.conversions[1].conversion, '%');
  EXPECT_EQ(format.conversions[2].literal, "c");
  EXPECT_TRUE(format.conversions[2].aggregation);
  EXPECT_TRUE(format.conversions[2].width_arg);
  EXPECT_TRUE(format.conversions[2].precision_arg);
  EXPECT_EQ(format.conversions[3].width, 16);
  EXPECT_EQ(format.conversions[5].literal, "\n");
  EXPECT_EQ(format.conversions[5].conversion, 0);
}

TEST(DCompile, TakesTenThousandClauses) {
  std::string text;
  for (int i = 0; i < 10000; ++i) {
    const std::string n = std::to_string(i);
    text += "dtmalloc::temp:malloc\n/arg0 > " + n + "/\n{ x" + n + " = args[3]; @a" + n +
            "[probefunc] = count(); }\n";
  }
  Compiled program("BEGIN {}");
  program.input.text = text;
  program.input.file = "large.d";
  program.catalog.matches_asked = 0;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(program.compile()) << program.message();
  EXPECT_EQ(program.output.program.clauses.size(), 10000U);
  EXPECT_EQ(program.catalog.matches_asked, 1U) << "one description is matched once";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(program.clause(9999).where.line, 9999U * 3 + 1);
}

TEST(DCompile, IsAFunctionOfItsInputs) {
  const std::string text = "dtmalloc::: { @[probefunc] = quantize(arg3); }";
  const Compiled a(text);
  const Compiled b(text);
  EXPECT_EQ(a.output.type_dump, b.output.type_dump);
  Compiled failing("BEGIN { x = 1; @a = count(); y; }");
  EXPECT_FALSE(failing.ok);
  EXPECT_TRUE(failing.space.variables.empty());
  EXPECT_TRUE(failing.space.aggregations.empty());
  EXPECT_EQ(failing.space.globals, 0U);
}

}  // namespace
}  // namespace dtmalloc::dtrace
