// SPDX-License-Identifier: BSD-2-Clause
// The structure of a D program: if and else, inlines, translators, attributes, providers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "dtrace/dif/attributes.hpp"
#include "support/d_program.hpp"
#include "support/d_session.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;
using testing::DSession;
using ::testing::HasSubstr;

std::string output(const std::string& program) { return DSession().run(program); }

// REQ: DSTRUCT-01
TEST(DSugar, TakesTheBranchWhoseConditionHolds) {
  EXPECT_EQ(output("BEGIN {if (3 > 2) {printf(\"yes\");} else {printf(\"no\");} exit(0)}"),
            "yes\n");
  EXPECT_EQ(output("BEGIN {if (3 < 2) {printf(\"yes\");} else {printf(\"no\");} exit(0)}"), "no\n");
  EXPECT_EQ(output("BEGIN {if (0) printf(\"a\"); printf(\"b\"); if (1) printf(\"c\"); exit(0)}"),
            "bc\n");
  const std::string chain =
      "if (x == 1) printf(\"one\"); else if (x == 2) {printf(\"two\")} "
      "else if (x == 3) { if (y) printf(\"three y\"); else printf(\"three\") } "
      "else { printf(\"other\"); }";
  EXPECT_EQ(output("BEGIN {x = 1; y = 0; " + chain + " exit(0)}"), "one\n");
  EXPECT_EQ(output("BEGIN {x = 2; y = 0; " + chain + " exit(0)}"), "two\n");
  EXPECT_EQ(output("BEGIN {x = 3; y = 0; " + chain + " exit(0)}"), "three\n");
  EXPECT_EQ(output("BEGIN {x = 3; y = 7; " + chain + " exit(0)}"), "three y\n");
  EXPECT_EQ(output("BEGIN {x = 4; y = 7; " + chain + " exit(0)}"), "other\n");
  // An else belongs to the nearest if; a semicolon alone is a statement; a block may be empty.
  EXPECT_EQ(output("BEGIN {if (1) if (0) printf(\"a\"); else printf(\"b\"); exit(0)}"), "b\n");
  EXPECT_EQ(output("BEGIN {if (1) ; else printf(\"a\"); if (0) {} else {} exit(0)}"), "\n");
  // The type of a condition is its own affair.
  EXPECT_EQ(output("BEGIN {if (\"a\" == \"a\") printf(\"s\"); if (\"a\" == \"b\") printf(\"t\"); "
                   "exit(0)}"),
            "s\n");
  EXPECT_EQ(output("BEGIN {p = (char *)1; if (p) printf(\"p\"); if (!p) printf(\"q\"); exit(0)}"),
            "p\n");
}

// REQ: DSTRUCT-01
TEST(DSugar, IsRefusedWhereItIsNoStatement) {
  for (const char* program :
       {"BEGIN { else trace(1); }", "BEGIN { if 1 trace(1); }", "BEGIN { if (1) trace(1) else ; }",
        "BEGIN { if () trace(1); }", "BEGIN { x = if (1) 2; }", "BEGIN { if (1) }",
        "BEGIN { { trace(1); } }", "BEGIN { if (1) { trace(1); }",
        "BEGIN { if (1) { trace(1); } ) }", "BEGIN /if (1) 1/ {}"}) {
    const Compiled compiled(program);
    EXPECT_EQ(compiled.tag(), "D_SYNTAX") << program;
  }
  const Compiled action("BEGIN { if (trace(1)) exit(0); }");
  EXPECT_EQ(action.tag(), "D_OP_ACT");
  const Compiled type("BEGIN { if (curthread->nothing) exit(0); }");
  EXPECT_EQ(type.tag(), "D_OP_INCOMPLETE");
}

// REQ: DSTRUCT-02 DSTRUCT-05
TEST(DSugar, CountsEveryPieceAsMatched) {
  DSession session;
  ASSERT_EQ(session.start("BEGIN {if (3 > 2) {printf(\"yes\");} else {printf(\"no\");} exit(0)}"),
            "");
  EXPECT_THAT(session.err, HasSubstr("dtrace: description 'BEGIN ' matched 7 probes\n"));
  DSession two;
  ASSERT_EQ(two.add("BEGIN {if (1) {x = 1;}}"), "");
  EXPECT_EQ(two.matched, 4u);  // ERROR; clear, condition, body
  // A second program needs no clause on ERROR any more.
  ASSERT_EQ(two.add("BEGIN,END /x/ {if (1) {x = 1;} y = 1}"), "");
  EXPECT_EQ(two.matched, 2u * 5u);  // clear, predicate, condition, body, rest
  ASSERT_EQ(two.add("BEGIN {x = 1;}"), "");
  EXPECT_EQ(two.matched, 1u);
}

// REQ: DSTRUCT-03 DSTRUCT-07
TEST(DSugar, PrintsTheProgramThatItMakes) {
  DSession session;
  ASSERT_EQ(session.add("BEGIN /x = 1, 1/ {trace(\"a\\n\"); if (x > 2) @a[x] = count(); else "
                        "this->y = -1; trace(probename)}"),
            "");
  const std::string sound = "/!((self->%error))/\n";
  EXPECT_EQ(session.session->dump(session.program, "desugared"),
            "dtrace:::ERROR\n{\n        ((self->%error) = 0x1);\n}\n\n"
            ":::BEGIN\n{\n        ((self->%error) = 0x0);\n}\n\n"
            ":::BEGIN\n" +
                sound +
                "{\n        ((this->%condition_1) = (0x1 && ((x = 0x1) , 0x1)));\n}\n\n"
                ":::BEGIN\n/(!((self->%error)) && (this->%condition_1))/\n"
                "{\n        trace(\"a\\n\");\n}\n\n"
                ":::BEGIN\n" +
                sound +
                "{\n        ((this->%condition_2) = ((this->%condition_1) && (x > 0x2)));\n}\n\n"
                ":::BEGIN\n/(!((self->%error)) && (this->%condition_2))/\n"
                "{\n        (@a[x] = count());\n}\n\n"
                ":::BEGIN\n" +
                sound +
                "{\n        ((this->%condition_3) = ((this->%condition_1) && "
                "!((this->%condition_2))));\n}\n\n"
                ":::BEGIN\n/(!((self->%error)) && (this->%condition_3))/\n"
                "{\n        ((this->y) = -(0x1));\n}\n\n"
                ":::BEGIN\n/(!((self->%error)) && (this->%condition_1))/\n"
                "{\n        trace(probename);\n}\n\n");
  // A program without branches is printed as it is.
  ASSERT_EQ(session.add("BEGIN,END /1/ {x++; y = arg0 ? sizeof (int) : (char)2u}"), "");
  EXPECT_EQ(session.session->dump(session.program, "desugared"),
            ":::BEGIN,\n:::END\n/0x1/\n{\n        (x)++;\n"
            "        (y = (arg0 ? sizeof(int) : ((char)0x2u)));\n}\n\n");
}

// REQ: DSTRUCT-03
TEST(DSugar, TestsTheOriginalPredicateFirst) {
  EXPECT_EQ(output("BEGIN /0/ {if (1) printf(\"a\"); printf(\"b\");} BEGIN {exit(0)}"), "\n");
  EXPECT_EQ(output("BEGIN /1/ {if (1) printf(\"a\"); printf(\"b\");} BEGIN {exit(0)}"), "ab\n");
  // An inner condition is not even evaluated where the outer one fails.
  EXPECT_EQ(output("BEGIN {if (0) {if (x++) printf(\"a\");} if (!x) printf(\"never\"); exit(0)}"),
            "never\n");
}

// REQ: DSTRUCT-04
TEST(DSugar, StopsAtTheFirstFault) {
  DSession session;
  (void)session.session->set_option("quiet");
  ASSERT_EQ(session.start("dtmalloc::aa:malloc {n++; if (n == 1) {printf(\"before,\"); "
                          "x = *(int *)0; } printf(\"after %d,\", n); if (1) printf(\"last\\n\");}"
                          "ERROR {printf(\"ERROR,\")}"),
            "");
  session.pair();
  session.pair();
  session.session->stop();
  // The faulting piece and what follows are lost; the firing after it runs to its end.
  EXPECT_EQ(session.out, "ERROR,after 2,last\n\n");
  // A condition that faults is no different.
  EXPECT_EQ(output("BEGIN {printf(\"a\"); if (*(int *)0) printf(\"b\"); else printf(\"c\"); "
                   "printf(\"d\");} BEGIN {exit(0)}"),
            "a\n");
}

// REQ: DSTRUCT-06
TEST(DSugar, KeepsClauseLocalsAcrossPieces) {
  EXPECT_EQ(output("BEGIN {this->x = 5; if (this->x > 3) this->y = this->x * 2; else this->y = 0; "
                   "printf(\"%d\", this->y); exit(0)}"),
            "10\n");
  EXPECT_EQ(output("BEGIN {this->a = timestamp; this->b = timestamp; if (1) {this->c = timestamp;} "
                   "printf(\"%d %d\", this->a == this->b, this->c >= this->a); exit(0)}"),
            "1 1\n");
}

double seconds(const std::string& text, std::string* tag) {
  const auto start = std::chrono::steady_clock::now();
  const Compiled compiled(text);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  *tag = compiled.tag();
  return took;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  out.reserve(text.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// 100,000 times, with a number for the #.
std::string numbered(const std::string& pattern) {
  const std::size_t mark = pattern.find('#');
  std::string text;
  for (int i = 0; i < 100000; ++i) {
    text += pattern.substr(0, mark) + std::to_string(i) + pattern.substr(mark + 1);
  }
  return text;
}

// REQ: DSTRUCT-08
TEST(DSugar, CompilesInTimeThatGrowsWithTheText) {
  struct Shape {
    const char* name;
    std::string text;
    const char* tag;
  };
  const Shape shapes[] = {
      {"clauses", repeated("BEGIN /1/ { x = 1; trace(x); @a[probename] = count(); }\n", 1000), ""},
      {"branches", repeated("BEGIN { if (1) trace(1); else trace(2); }\n", 1000), ""},
      {"chain", "BEGIN { " + repeated("if (1) trace(1); else ", 2000) + "trace(2); }", ""},
      {"descriptions", "BEGIN" + repeated(",END", 3000) + " { trace(1); }", ""},
      {"deep", "BEGIN { " + repeated("if (1) ", 400) + "trace(2); }", ""},
      {"too deep", "BEGIN { " + repeated("if (1) { ", 100000) + "trace(2); ", "D_SIM_NESTING"},
      {"statements", "BEGIN { " + repeated("trace(1); ", 20000) + "}", ""},
      {"blanks", repeated(" \n", 500000) + "BEGIN {}", ""},
      {"enumerators", "enum e {" + numbered("E#, ") + "E}; BEGIN {trace(E)}", ""},
      {"refused enumerators", "enum e {" + numbered("E#, ") + "E}; BEGIN {trace(F)}",
       "D_IDENT_UNDEF"},
      {"members", "struct s {" + numbered("int m#; ") + "} x; BEGIN {}", ""},
      {"parameters", "int f(" + numbered("int a#, ") + "int a); BEGIN {}", ""},
      {"keys", "inline int f[" + numbered("int a#, ") + "int a] = a; BEGIN {}", ""},
      {"probes", "provider p {" + numbered("probe q#(int); ") + "}; BEGIN {}", ""},
      {"provider twice",
       "provider p {" + numbered("probe q#(int); ") + "}; provider p {" +
           numbered("probe q#(int); ") + "}; BEGIN {}",
       ""},
  };
  for (const Shape& shape : shapes) {
    std::string tag;
    EXPECT_LT(seconds(shape.text, &tag), 5) << shape.name;
    EXPECT_EQ(tag, shape.tag) << shape.name;
  }
}

// REQ: DSTRUCT-09
TEST(DInline, StandsForItsExpression) {
  EXPECT_EQ(output("inline int two = 2; BEGIN {printf(\"%d\", two + two); exit(0)}"), "4\n");
  EXPECT_EQ(output("inline int a = 1; inline int b = a + pid * 0; BEGIN {printf(\"%d %d\", b, "
                   "sizeof (b)); exit(0)}"),
            "1 4\n");
  EXPECT_EQ(output("inline string s = \"a%d\"; BEGIN {printf(s, 5); exit(0)}"), "a5\n");
  EXPECT_EQ(output("inline int8_t c = 300; inline int8_t v = pid; BEGIN {printf(\"%d %d\", c, v); "
                   "exit(0)}"),
            "44 -24\n");  // pid is 1000
  // Two programs share it.
  DSession session;
  ASSERT_EQ(session.add("inline int later = pid + 1; BEGIN {}"), "");
  ASSERT_EQ(session.start("BEGIN {printf(\"%d\", later)}"), "");
  session.session->stop();
  EXPECT_THAT(session.out, HasSubstr(" 1001\n"));
}

// REQ: DSTRUCT-10
TEST(DInline, WithKeysIsUsedLikeAnArray) {
  EXPECT_EQ(output("inline int sq[int x] = x * x; BEGIN {printf(\"%d %d\", sq[3], sq[sq[2] + 1]); "
                   "exit(0)}"),
            "9 25\n");
  EXPECT_EQ(output("inline string pick[int x, string a, string b] = x ? a : b; "
                   "inline string not[int x] = pick[x, \"no\", \"yes\"]; "
                   "BEGIN {printf(\"%s %s\", not[0], not[1]); exit(0)}"),
            "yes no\n");
}

struct Refusal {
  const char* program;
  const char* tag;
  const char* message;
};

void expect_refused(const Refusal& row, const char* file = "") {
  Compiled compiled(row.program, file);
  EXPECT_EQ(compiled.tag(), row.tag) << row.program;
  EXPECT_EQ(compiled.message(), row.message) << row.program;
}

// REQ: DSTRUCT-11
TEST(DInline, IsRefused) {
  constexpr Refusal kRows[] = {
      {"inline int x = 1; inline int x = 2; BEGIN {}", "D_DECL_IDRED",
       "identifier redefined: x\n\t current: inline definition\n\tprevious: scalar inline"},
      {"inline int pid = 1; BEGIN {}", "D_DECL_IDRED",
       "identifier redefined: pid\n\t current: inline definition\n\tprevious: scalar built-in"},
      {"inline void v = 1; BEGIN {}", "D_DECL_VOIDOBJ", "cannot declare void inline: v"},
      {"inline int v = \"a\"; BEGIN {}", "D_OP_INCOMPAT",
       "inline v definition uses incompatible types: \"int\" = \"string\""},
      {"inline int v = args[0]; BEGIN {}", "D_ARGS_NONE",
       "args[ ] may not be referenced outside of a probe clause"},
      {"inline int v = w; inline int w = 1; BEGIN {}", "D_IDENT_UNDEF",
       "failed to resolve w: Unknown variable name"},
      {"inline int v = v; BEGIN {}", "D_IDENT_UNDEF", "failed to resolve v: Unknown variable name"},
      {"inline int t = 2; BEGIN {t = 3}", "D_OP_LVAL",
       "in action list: operator = requires modifiable lvalue as an operand"},
      {"inline int t = pid; BEGIN {t = 3}", "D_OP_WRITE",
       "in action list: operator = can only be applied to a writable variable"},
      {"inline int; BEGIN {}", "D_DECL_USELESS", "inline declaration requires a name"},
      {"inline static int x = 1; BEGIN {}", "D_DECL_BADCLASS",
       "specified storage class not appropriate for inline declaration"},
      {"inline int a`b = 1; BEGIN {}", "D_DECL_SCOPE",
       "D scoping operator may not be used in a declaration name (a`b)"},
      {"inline int f[int x] = x; BEGIN {trace(f[\"a\"])}", "D_PROTO_ARG",
       "in action list: f[ ] key #1 is incompatible with prototype:\n\tprototype: int\n\t      "
       "key: string"},
      {"inline int f[int x] = x; BEGIN {trace(f[1, 2])}", "D_PROTO_LEN",
       "in action list: f[ ] prototype mismatch: 2 keys passed, 1 expected"},
      {"inline int f[int x] = x; BEGIN {trace(f)}", "D_IDENT_BADREF",
       "in action list: array 'f' may not be referenced as scalar"},
      {"inline int f[] = 1; BEGIN {}", "D_DECL_ARRNULL",
       "inline declaration requires array tuple signature: f"},
      {"inline int f[3] = 1; BEGIN {}", "D_DECL_ARRNULL",
       "inline declaration cannot be of scalar array type: f"},
      {"inline int f[int x, int x] = 1; BEGIN {}", "D_DECL_PROTO_FORM",
       "parameter is already declared in array prototype: x, parameter #2"},
      {"inline int x = 1", "D_SYNTAX", "syntax error near end of input"},
  };
  for (const Refusal& row : kRows) expect_refused(row);
  // Each use is code of its own: what doubles sixty times does not fit, and says so in time.
  std::string doubles = "inline int64_t x0 = pid;";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "x" + std::to_string(i - 1);
    doubles += "inline int64_t x" + std::to_string(i) + " = (" + before + ", " + before + ");";
  }
  std::string tag;
  EXPECT_LT(seconds(doubles + "BEGIN {trace(x59)}", &tag), 5);
  EXPECT_EQ(tag, "D_SIM_LIMIT");
  std::string chain = "inline int64_t x0 = pid;";
  for (int i = 1; i < 3000; ++i) {
    chain += "inline int64_t x" + std::to_string(i) + " = x" + std::to_string(i - 1) + ";";
  }
  (void)seconds(chain + "BEGIN {trace(x2999)}", &tag);
  EXPECT_EQ(tag, "D_SIM_NESTING");
}

// A structure to translate to is a kernel's here.
constexpr const char* kTranslator =
    "translator struct malloc_type_stats < int x > { mts_memalloced = x * 2; mts_size = n++; };\n";

// REQ: DSTRUCT-12
TEST(DTranslator, ComputesTheMemberThatIsUsed) {
  DSession session;
  (void)session.session->set_option("quiet");
  ASSERT_EQ(session.add("BEGIN {n = 1;}"), "");
  ASSERT_EQ(session.start(
                std::string(kTranslator) +
                    "BEGIN {\n"
                    "  printf(\"%d \", xlate <struct malloc_type_stats> (5).mts_memalloced);\n"
                    "  printf(\"%d \", xlate <struct malloc_type_stats *> (7)->mts_memalloced);\n"
                    "  printf(\"%d \", n);\n"
                    "  printf(\"%d \", xlate <struct malloc_type_stats *> (7)->mts_size);\n"
                    "  printf(\"%d\", n);\n}\n",
                "x.d"),
            "");
  session.session->stop();
  EXPECT_EQ(session.out, "10 14 1 1 2\n");
}

// REQ: DSTRUCT-26. The keys of an element are what the translator is given.
TEST(DTranslator, StandsInAnArray) {
  DSession session;
  (void)session.session->set_option("quiet");
  ASSERT_EQ(
      session.start("int n; struct pair {int a; int b;};\n"
                    "translator struct pair < int x > { a = x * 2; b = x + n; };\n"
                    "inline struct pair of[int i, int j] = xlate <struct pair> (i * 10 + j);\n"
                    "inline struct pair *to[int i] = xlate <struct pair *> (i);\n"
                    "inline struct pair twice[int i] = of[i, i];\n"
                    "inline int both[int i] = of[i, 1].a + to[i]->b;\n"
                    "BEGIN {\n"
                    "  n = 100;\n"
                    "  printf(\"%d %d %d \", of[1, 2].a, of[1, 2].b, to[3]->a);\n"
                    "  printf(\"%d %d \", of[of[0, 1].a, to[2]->a].a, twice[4].a);\n"
                    "  printf(\"%d \", both[twice[1].a]);\n"
                    "  this->p = of[5, 0]; printf(\"%d %d\", this->p.a, this->p.b);\n}\n",
                    "x.d"),
      "");
  session.session->stop();
  EXPECT_EQ(session.out, "24 112 6 48 88 564 100 150\n");
}

// REQ: DSTRUCT-12
TEST(DTranslator, MakesAWholeStructureWithZeroesElsewhere) {
  DSession session;
  (void)session.session->set_option("quiet");
  ASSERT_EQ(session.start("translator struct malloc_type_stats < int x > { mts_numallocs = x; };\n"
                          "BEGIN { trace(xlate <struct malloc_type_stats> (65)); }\n",
                          "x.d"),
            "");
  session.session->stop();
  EXPECT_THAT(
      session.out,
      HasSubstr("    10: 41 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  A..............."));
  EXPECT_THAT(session.out, HasSubstr("     0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"));
}

// REQ: DSTRUCT-13
TEST(DTranslator, IsRefused) {
  const std::string good =
      "translator struct malloc_type_stats < int x > { mts_memalloced = x * 2; };\n";
  struct Row {
    std::string program;
    const char* tag;
    const char* message;
  };
  const Row rows[] = {
      {good + "BEGIN { trace(xlate <struct malloc_type_stats *> (5)); }", "D_TRACE_DYN",
       "line 2: trace( ) may not be applied to a translated pointer"},
      {good + "BEGIN { xlate <struct malloc_type_stats *> (5); }", "D_CG_DYN",
       "line 2: expression cannot evaluate to result of a translated pointer"},
      {good + "BEGIN { y = xlate <struct malloc_type_stats *> (5); }", "D_OP_DYN",
       "line 2: operator = operands cannot be of dynamic type"},
      {good + "BEGIN { y = (long)xlate <struct malloc_type_stats *> (5); }", "D_CAST_INVAL",
       "line 2: invalid cast expression: \"translated pointer\" to \"long\""},
      {good + "BEGIN { y = xlate <struct malloc_type_stats *> (5)->mts_size; }", "D_XLATE_NOCONV",
       "line 2: translator does not define conversion for member: mts_size"},
      {good + "BEGIN { y = xlate <struct malloc_type_stats *> (5)->none; }", "D_TYPE_MEMBER",
       "line 2: none is not a member of struct malloc_type_stats"},
      {good + "BEGIN { y = xlate <struct malloc_type_stats> (\"a\"); }", "D_XLATE_NONE",
       "line 2: cannot translate from \"string\" to \"struct malloc_type_stats\""},
      {good + good, "D_XLATE_REDECL",
       "line 2: translator from int to struct malloc_type_stats has already been declared"},
      {"translator struct malloc_type_stats < int x > { none = x; };", "D_XLATE_MEMB",
       "line 1: translator member none is not a member of struct malloc_type_stats"},
      {"translator struct malloc_type_stats < int x > { mts_size = \"a\"; };", "D_XLATE_INCOMPAT",
       "line 1: translator member mts_size definition uses incompatible types: \"uint64_t\" = "
       "\"string\""},
      {"translator int < int x > { };", "D_XLATE_SOU",
       "line 1: translator output type must be a struct or union"},
      {"translator struct nope < int x > { };", "D_XLATE_SOU",
       "line 1: incomplete struct/union/enum struct nope"},
  };
  for (const Row& row : rows) expect_refused({row.program.c_str(), row.tag, row.message}, "x.d");
}

// REQ: DSTRUCT-14
TEST(DAttributes, AreTheLeastOfWhatIsNamed) {
  Compiled program("dtrace:::BEGIN {trace(curthread)} BEGIN {x = 1}");
  ASSERT_TRUE(program.ok) << program.message();
  EXPECT_EQ(to_string(program.clause(0).description_attribute), "Stable/Stable/Common");
  EXPECT_EQ(to_string(program.clause(0).statement_attribute), "Stable/Private/Common");
  EXPECT_EQ(to_string(program.clause(1).description_attribute), "Unstable/Unstable/Common");
  program.input.least_attribute = parse_attribute("Evolving/evolving/common");
  ASSERT_TRUE(program.input.least_attribute);
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_ATTR_MIN");
  EXPECT_EQ(program.message(),
            "in action list: attributes for scalar curthread (Stable/Private/Common) are less than "
            "predefined minimum");
  program.input.text = "BEGIN {}";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.message(),
            "attributes for probe description :::BEGIN (Unstable/Unstable/Common) are less than "
            "predefined minimum");
  DSession session;
  EXPECT_FALSE(session.session->set_option("amin=Stable/Stable"));
  EXPECT_TRUE(session.session->set_option("amin=Stable/Stable/Common"));
  EXPECT_THAT(session.add("END {}"), HasSubstr("less than predefined minimum"));
}

// REQ: DSTRUCT-15 DSTRUCT-18
TEST(DPragma, SaysWhatIsWrong) {
  constexpr Refusal kRows[] = {
      {"#pragma D attributes Stable/Stable/Common nope\nBEGIN {}", "D_PRAGMA_UNUSED",
       "line 1: unused #pragma attributes"},
      {"BEGIN {}\n#pragma D attributes Stable/Stable/Common pid\n", "D_PRAGMA_SCOPE",
       "line 2: #pragma attributes cannot modify entity defined outside program scope"},
      {"#pragma D attributes Stable/Stable x\nBEGIN {}", "D_PRAGMA_INVAL",
       "line 1: invalid attributes specified by #pragma attributes"},
      {"#pragma D attributes Stable/Stable/Common\nBEGIN {}", "D_PRAGMA_MALFORM",
       "line 1: malformed #pragma attributes <attributes> <ident>"},
      {"#pragma D attributes Stable/Stable/Common x y\nBEGIN {}", "D_PRAGMA_MALFORM",
       "line 1: superfluous arguments specified for #pragma attributes"},
      {"#pragma D attributes Stable/Stable/Common provider p colour\nBEGIN {}", "D_PRAGMA_INVAL",
       "line 1: invalid component \"colour\" in attribute #pragma for provider p"},
      {"#pragma D binding 1.0 x\nBEGIN {}", "D_PRAGMA_MALFORM",
       "line 1: malformed #pragma binding \"version\" <ident>"},
      {"#pragma D binding \"1.x\" x\nBEGIN {}", "D_PRAGMA_INVAL",
       "line 1: invalid version string specified by #pragma binding"},
      {"#pragma D binding \"1.0\" x\nBEGIN {}", "D_PRAGMA_UNUSED",
       "line 1: unused #pragma binding"},
      {"#pragma D depends_on library x.d\nBEGIN {}", "D_PRAGMA_DEPEND",
       "line 1: main program may not explicitly depend on a library"},
      {"#pragma D depends_on provider x\nBEGIN {}", "D_PRAGMA_DEPEND",
       "line 1: program requires provider x"},
      {"#pragma D depends_on kennel x\nBEGIN {}", "D_PRAGMA_INVAL",
       "line 1: invalid class kennel specified by #pragma depends_on"},
      {"#pragma D depends_on module\nBEGIN {}", "D_PRAGMA_MALFORM",
       "line 1: malformed #pragma depends_on <class> <name>"},
      {"#pragma D colour red\nBEGIN {}", "D_PRAGMA_INVAL", "line 1: invalid D pragma: colour"},
      {"BEGIN {}\n#ident", "D_SYNTAX",
       "line 2: end-of-file encountered before end of control line"},
  };
  for (const Refusal& row : kRows) expect_refused(row, "x.d");
  const Compiled set(
      "#pragma D attributes Private/Private/Common two\ninline int two = pid;\n"
      "#pragma D depends_on provider dtmalloc\ndtrace:::BEGIN {trace(two)}",
      "x.d");
  ASSERT_TRUE(set.ok) << set.message();
  EXPECT_EQ(to_string(set.clause().statement_attribute), "Private/Private/Common");
}

// REQ: DSTRUCT-16
TEST(DAttributes, AreReportedByProgramAndClause) {
  DSession session;
  ASSERT_EQ(session.add("dtrace:::BEGIN {trace(curthread)}"), "");
  const std::string summary =
      "\nStability attributes for description dtrace:::BEGIN :\n"
      "\n\tMinimum Probe Description Attributes\n\t\tIdentifier Names: Stable\n"
      "\t\tData Semantics:   Stable\n\t\tDependency Class: Common\n"
      "\n\tMinimum Statement Attributes\n\t\tIdentifier Names: Stable\n"
      "\t\tData Semantics:   Private\n\t\tDependency Class: Common\n";
  EXPECT_EQ(session.session->stability_report(session.program, false), summary + "\n");
  EXPECT_EQ(session.session->stability_report(session.program, true),
            summary +
                "\ndtrace:::BEGIN\n"
                "\n\tProbe Description Attributes\n\t\tIdentifier Names: Stable\n"
                "\t\tData Semantics:   Stable\n\t\tDependency Class: Common\n"
                "\n\tArgument Attributes\n\t\tIdentifier Names: Stable\n"
                "\t\tData Semantics:   Stable\n\t\tDependency Class: Common\n"
                "\n\tArgument Types\n\t\tNone\n\n");
}

// REQ: DSTRUCT-17
TEST(DProviderDefinition, IsCheckedOnly) {
  const Compiled good("provider p { probe go(int, char *); probe a__b(); probe c; };\nBEGIN {}",
                      "x.d");
  EXPECT_TRUE(good.ok) << good.message();
  constexpr Refusal kRows[] = {
      {"provider p1 { probe go(int); };", "D_PROV_BADNAME",
       "line 1: provider name may not end with a digit: p1"},
      {"provider p { probe a`b(int); };", "D_PROV_BADNAME",
       "line 1: probe name may not contain scoping operator: a`b"},
      {"provider p { probe go(int); probe go(); };", "D_PROV_PRDUP",
       "line 1: probe redeclared: p:go"},
      {"provider p { probe go(int, char *); };\nprovider p { probe go(int); };", "D_PROV_INCOMPAT",
       "line 2: probe p:go input prototype mismatch:\n\t current: 1 arg\n\tprevious: 2 args"},
      {"provider p { probe go(int); };\nprovider p { probe go(long); };", "D_PROV_INCOMPAT",
       "line 2: probe p:go input prototype argument #1 mismatch:\n\t current: long\n\tprevious: "
       "int"},
      {"provider p { probe go(int); };\nprovider p { probe on(int); };", "D_PROV_INCOMPAT",
       "line 2: provider interface mismatch: p\n\t current: probe p:on defined\n\tprevious: probe "
       "p:on not defined"},
      {"provider p { probe go(int x) : (struct malloc_type *x); };", "D_PROV_PRXLATOR",
       "line 1: translator for p:go output argument #1 from int to struct malloc_type * is not "
       "defined"},
  };
  for (const Refusal& row : kRows) expect_refused(row, "x.d");
}

}  // namespace
}  // namespace dtmalloc::dtrace
