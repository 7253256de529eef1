// SPDX-License-Identifier: BSD-2-Clause
// The structure of a D program: if and else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

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
  const std::string sound = "/!((this->%error))/\n";
  EXPECT_EQ(session.session->dump(session.program, "desugared"),
            "dtrace:::ERROR\n{\n        ((this->%error) = 0x1);\n}\n\n"
            ":::BEGIN\n{\n        ((this->%error) = 0x0);\n}\n\n"
            ":::BEGIN\n" +
                sound +
                "{\n        ((this->%condition_1) = (0x1 && ((x = 0x1) , 0x1)));\n}\n\n"
                ":::BEGIN\n/(!((this->%error)) && (this->%condition_1))/\n"
                "{\n        trace(\"a\\n\");\n}\n\n"
                ":::BEGIN\n" +
                sound +
                "{\n        ((this->%condition_2) = ((this->%condition_1) && (x > 0x2)));\n}\n\n"
                ":::BEGIN\n/(!((this->%error)) && (this->%condition_2))/\n"
                "{\n        (@a[x] = count());\n}\n\n"
                ":::BEGIN\n" +
                sound +
                "{\n        ((this->%condition_3) = ((this->%condition_1) && "
                "!((this->%condition_2))));\n}\n\n"
                ":::BEGIN\n/(!((this->%error)) && (this->%condition_3))/\n"
                "{\n        ((this->y) = -(0x1));\n}\n\n"
                ":::BEGIN\n/(!((this->%error)) && (this->%condition_1))/\n"
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
  };
  for (const Shape& shape : shapes) {
    std::string tag;
    EXPECT_LT(seconds(shape.text, &tag), 5) << shape.name;
    EXPECT_EQ(tag, shape.tag) << shape.name;
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
