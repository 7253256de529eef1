// SPDX-License-Identifier: BSD-2-Clause
// Refusals of declarations and of the use of what they declare: tag and text, by the table of
// spec/dtrace.md 25.
#include <gtest/gtest.h>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;

struct Row {
  const char* declarations;
  const char* statements;
  const char* tag;
  const char* message;
};

void refuse(const Row& row) {
  const Compiled program(
      std::string(row.declarations) + "\ndtmalloc::temp:malloc { " + row.statements + " }",
      "script.d");
  EXPECT_EQ(program.tag(), row.tag) << row.declarations << " / " << row.statements;
  const std::string text = program.message();
  const std::size_t colon = text.find(": ");
  EXPECT_EQ(colon == std::string::npos ? text : text.substr(colon + 2), row.message)
      << row.declarations << " / " << row.statements;
}

TEST(DTypes, RefusesBadDeclarations) {
  // REQ: DTYPES-13 DTYPES-26
  constexpr const char* kSub =
      "positive integral constant expression or tuple signature expected as array declaration "
      "subscript";
  const Row kRows[] = {
      {"short char x;", "", "D_DECL_CHARATTR",
       "invalid type declaration: short and long may not be used with char type"},
      {"char long x;", "", "D_DECL_CHARATTR",
       "invalid type declaration: short and long may not be used with char type"},
      {"unsigned void *x;", "", "D_DECL_VOIDATTR",
       "invalid type declaration: attributes may not be used with void type"},
      {"struct s {int a;}; unsigned struct s x;", "", "D_DECL_SIGNINT",
       "invalid type declaration: signed and unsigned may only be used with integer type"},
      {"unsigned uint64_t x;", "", "D_DECL_SIGNINT",
       "invalid type declaration: signed and unsigned may only be used with integer type"},
      {"struct s {int a;}; long struct s x;", "", "D_DECL_LONGINT",
       "invalid type declaration: long and long long may only be used with integer or "
       "floating-point type"},
      {"int uint_t x;", "", "D_DECL_IDENT", "old-style declaration or incorrect type specified"},
      {"self this int x;", "", "D_DECL_CLASS", "only one storage class allowed in a declaration"},
      {"typedef extern int x;", "", "D_DECL_CLASS",
       "only one storage class allowed in a declaration"},
      {"static int x;", "", "D_DECL_BADCLASS", "specified storage class not appropriate in D"},
      {"auto int x;", "", "D_DECL_BADCLASS", "specified storage class not appropriate in D"},
      {"register int x;", "", "D_DECL_BADCLASS", "specified storage class not appropriate in D"},
      {"int a[static int];", "", "D_DECL_PARMCLASS",
       "inappropriate storage class for function or associative array parameter"},
      {"int f(self int x);", "", "D_DECL_PARMCLASS",
       "inappropriate storage class for function or associative array parameter"},
      {"int char x;", "", "D_DECL_COMBO", "invalid type combination"},
      {"signed unsigned x;", "", "D_DECL_COMBO", "invalid type combination"},
      {"long long long x;", "", "D_DECL_COMBO", "invalid type combination"},
      {"int a[0];", "", "D_DECL_ARRSUB", kSub},
      {"int a[-1];", "", "D_DECL_ARRSUB", kSub},
      {"int a[\"x\"];", "", "D_DECL_ARRSUB", kSub},
      {"int a[pid];", "", "D_DECL_ARRSUB", kSub},
      {"int a[];", "", "D_DECL_ARRNULL",
       "array declaration requires array dimension or tuple signature: a"},
      {"int a[4294967296];", "", "D_DECL_ARRBIG", "array dimension too big"},
      {"", "trace(sizeof (int [4294967295][4294967295]));", "D_DECL_ARRBIG",
       "array dimension too big"},
      {"struct s {int a;}; struct s {int b;};", "", "D_DECL_TYPERED", "type redeclared: struct s"},
      {"union u {union u {int a;} b;};", "", "D_DECL_TYPERED", "type redeclared: union u"},
      {"enum e {A}; enum e {B};", "", "D_DECL_TYPERED", "type redeclared: enum e"},
      {"struct s {int *;};", "", "D_DECL_MNAME", "member declaration requires a name"},
      {"struct s {int a`b;};", "", "D_DECL_SCOPE",
       "D scoping operator may not be used in a member name (a`b)"},
      {"enum e {A`B};", "", "D_DECL_SCOPE",
       "D scoping operator may not be used in an enumerator name (A`B)"},
      {"int a`b;", "", "D_DECL_SCOPE",
       "D scoping operator may not be used in a declaration name (a`b)"},
      {"struct s {int a : 0;};", "", "D_DECL_BFCONST",
       "positive integral constant expression expected as bit-field size"},
      {"struct s {int a : pid;};", "", "D_DECL_BFCONST",
       "positive integral constant expression expected as bit-field size"},
      {"struct s {int a : 33;};", "", "D_DECL_BFSIZE", "bit-field too big for type: a"},
      {"struct s {char : 9;};", "", "D_DECL_BFSIZE", "bit-field too big for type: (anon)"},
      {"struct s {int *a : 3;};", "", "D_DECL_BFTYPE", "invalid type for bit-field: a"},
      {"struct s {string a : 3;};", "", "D_DECL_BFTYPE", "invalid type for bit-field: a"},
      {"enum e {A = \"x\"};", "", "D_DECL_ENCONST",
       "enumerator 'A' must be assigned to an integral constant expression"},
      {"enum e {A = 2147483648};", "", "D_DECL_ENOFLOW",
       "enumerator 'A' value overflows INT_MAX (2147483647)"},
      {"enum e {A = 0x7fffffff, B};", "", "D_DECL_ENOFLOW",
       "enumerator 'B' value overflows INT_MAX (2147483647)"},
      {"int;", "", "D_DECL_USELESS", "useless declaration"},
      {"extern int;", "", "D_DECL_USELESS", "useless declaration"},
      {"this int a[int];", "", "D_DECL_LOCASSC",
       "associative arrays may not be declared as local variables: a"},
      {"void a[3];", "", "D_DECL_VOIDOBJ", "cannot declare array of void"},
      {"struct s {void a;};", "", "D_DECL_VOIDOBJ", "cannot have void member: a"},
      {"struct s {int a();};", "", "D_DECL_VOIDOBJ", "cannot have void member: a"},
      {"void x;", "", "D_DECL_VOIDOBJ", "cannot have void object: x"},
      {"typedef int a[string]; a x;", "", "D_DECL_VOIDOBJ", "cannot have void object: x"},
      {"int a[3][int];", "", "D_DECL_DYNOBJ", "cannot declare array of associative arrays"},
      {"int a[int][string];", "", "D_DECL_DYNOBJ", "cannot declare array of associative arrays"},
      {"struct s {int a[int];};", "", "D_DECL_DYNOBJ", "cannot have dynamic member: a"},
      {"struct s x;", "", "D_DECL_INCOMPLETE", "incomplete struct/union/enum struct s: x"},
      {"union u x;", "", "D_DECL_INCOMPLETE", "incomplete struct/union/enum union u: x"},
      {"enum e x;", "", "D_DECL_INCOMPLETE", "incomplete struct/union/enum enum e: x"},
      {"struct s {struct s x;};", "", "D_DECL_INCOMPLETE",
       "incomplete struct/union/enum struct s: x"},
      {"int a[int, ...];", "", "D_DECL_PROTO_VARARGS",
       "array prototype may not use a variable-length argument list"},
      {"int a[void];", "", "D_DECL_PROTO_TYPE",
       "array prototype may not use parameter of type void: (anonymous), parameter #1"},
      {"int a[int, void x];", "", "D_DECL_PROTO_TYPE",
       "array prototype may not use parameter of type void: x, parameter #2"},
      {"int f(int a[int]);", "", "D_DECL_PROTO_TYPE",
       "function prototype may not use parameter of type dynamic variable: a, parameter #1"},
      {"int f(void, int);", "", "D_DECL_PROTO_VOID", "void must be sole parameter"},
      {"int f(void x);", "", "D_DECL_PROTO_NAME", "void parameter may not have a name: x"},
      {"int f(int x, int x);", "", "D_DECL_PROTO_FORM",
       "parameter is already declared in function prototype: x, parameter #2"},
      {"struct s {int a; char a;};", "", "D_UNKNOWN",
       "failed to define member 'a': Duplicate member or variable name"},
      {"enum e {A, A};", "", "D_UNKNOWN",
       "failed to define enumerator 'A': Duplicate member or variable name"},
      {"struct nowhere`s *x;", "", "D_UNKNOWN",
       "failed to resolve type struct nowhere`s: Unknown type name"},
      // REQ: DTYPES-01
      {"int i = 0;", "", "D_SYNTAX", "syntax error near \"=\""},
      {"int a b;", "", "D_SYNTAX", "syntax error near \"b\""},
      {"struct s {};", "", "D_SYNTAX", "syntax error near \"}\""},
      {"enum e {A,};", "", "D_SYNTAX", "syntax error near \"}\""},
      {"struct;", "", "D_SYNTAX", "syntax error near \";\""},
      {"int (x;", "", "D_SYNTAX", "syntax error near \";\""},
      {"int f(int, ..);", "", "D_SYNTAX", "syntax error near \")\""},
      {"struct s {self int x;};", "", "D_SYNTAX", "syntax error near \"self\""},
      {"int x]", "", "D_SYNTAX", "extra ] in input stream"},
  };
  for (const Row& row : kRows) refuse(row);
}

TEST(DTypes, RefusesSecondMeanings) {
  // REQ: DTYPES-21 DTYPES-24
  const Row kRows[] = {
      {"enum e {pid};", "", "D_DECL_IDRED", "identifier redeclared: pid"},
      {"int x; enum e {x};", "", "D_DECL_IDRED", "identifier redeclared: x"},
      {"enum e {A}; enum g {A};", "", "D_DECL_IDRED", "identifier redeclared: A"},
      {"typedef int uint_t;", "", "D_DECL_IDRED", "identifier redeclared: uint_t"},
      {"extern int x; extern long x;", "", "D_DECL_IDRED",
       "identifier redeclared: D`x\n\t current: long\n\tprevious: int"},
      {"int f(int); int *f(int);", "", "D_DECL_IDRED",
       "identifier redeclared: D`f\n\t current: int *(int)\n\tprevious: int (int)"},
      {"int x; typedef int x;", "", "D_DECL_IDRED", "global variable identifier redeclared: x"},
      {"typedef int trace;", "", "D_DECL_IDRED", "global variable identifier redeclared: trace"},
      {"typedef int t; typedef long *t;", "", "D_DECL_IDRED", "typedef redeclared: t"},
      {"int pid;", "", "D_DECL_IDRED", "built-in identifier redeclared: pid"},
      {"string args;", "", "D_DECL_IDRED", "built-in identifier redeclared: args"},
      {"int strlen;", "", "D_DECL_IDRED", "built-in identifier redeclared: strlen"},
      {"typedef int t; self int *t;", "", "D_DECL_IDRED", "typedef identifier redeclared: t"},
      {"int uint_t;", "", "D_DECL_IDRED", "typedef identifier redeclared: uint_t"},
      {"int x; long x;", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: scalar long\n\tprevious: scalar int"},
      {"int x; int32_t x;", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: scalar int32_t\n\tprevious: scalar int"},
      {"this int x[3]; this int x[4];", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: scalar int [4]\n\tprevious: scalar int [3]"},
      {"int x; int x[int];", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: array int\n\tprevious: scalar int"},
      {"self int x[int]; self int x;", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: scalar int\n\tprevious: array int"},
      {"enum e {A}; int A;", "", "D_DECL_IDRED",
       "identifier redeclared: A\n\t current: scalar int\n\tprevious: enumerator enum e"},
      // REQ: DSTRUCT-27
      {"inline int a = 1; int a;", "", "D_DECL_IDRED",
       "identifier redeclared: a\n\t current: scalar int\n\tprevious: scalar inline"},
      {"inline int a[int x] = x; int a[int];", "", "D_DECL_IDRED",
       "identifier redeclared: a\n\t current: array int\n\tprevious: array inline"},
      {"inline int a = 1; enum e {a = 7};", "", "D_DECL_IDRED", "identifier redeclared: a"},
      {"enum e {A = 7}; inline int A = 3;", "", "D_DECL_IDRED",
       "identifier redefined: A\n\t current: inline definition\n\tprevious: enumerator enum e"},
      {"int x; inline int x = 3;", "", "D_DECL_IDRED",
       "identifier redefined: x\n\t current: inline definition\n\tprevious: scalar variable"},
      {"inline int EINVAL = 3;", "", "D_DECL_IDRED",
       "identifier redefined: EINVAL\n\t current: inline definition\n\tprevious: scalar inline"},
      {"inline int count = 3;", "", "D_DECL_IDRED",
       "identifier redefined: count\n\t current: inline definition\n\tprevious: aggregating "
       "function built-in"},
      {"inline int a = 1; typedef int a;", "", "D_DECL_IDRED",
       "global variable identifier redeclared: a"},
      {"inline int a = pid;", "a();", "D_FUNC_IDKIND",
       "scalar 'a' may not be referenced as a function"},
      {"int x[int, int]; int x[int];", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: array of int, tuple length 1\n\tprevious: array of "
       "int, tuple length 2"},
      {"int x[int, int]; int x[int, string];", "", "D_DECL_IDRED",
       "identifier redeclared: x\n\t current: array, key #2 of type string\n\tprevious: array, key "
       "#2 of type int"},
  };
  for (const Row& row : kRows) refuse(row);
  // REQ: DTYPES-21
  EXPECT_EQ(Compiled("int x; int x; self int x; this long x; int y[int]; int y[int]; extern int z;"
                     " extern int z; struct s; struct s; inline int a = 1; this int a; self int a; "
                     "BEGIN {}")
                .message(),
            "");
}

TEST(DTypes, AnEnumCountsAsAnInt) {
  // REQ: DTYPES-30
  constexpr const char* kRows[][2] = {
      {"x + 1", "int"},           {"1 - x", "int"},
      {"x * x", "int"},           {"x | (short)1", "int"},
      {"x + 1u", "unsigned int"}, {"x + 1l", "long"},
      {"pid ? x : x", "int"},     {"x", "enum e"},
  };
  for (const auto& [expression, type] : kRows) {
    const Compiled program(
        "struct s {int a;} y; enum e {A} x; BEGIN { y = " + std::string(expression) + "; }");
    EXPECT_EQ(program.message(),
              "in action list: operands have incompatible types: \"struct s\" = \"" +
                  std::string(type) + "\"")
        << expression;
  }
}

TEST(DTypes, RefusesBadUses) {
  // REQ: DTYPES-11 DTYPES-12 DTYPES-14 DTYPES-16 DTYPES-26
  constexpr const char* kBits = "struct b {int f : 3; int g;}; struct b x;";
  const Row kRows[] = {
      {"", "trace(offsetof(int, x));", "D_OFFSETOF_TYPE",
       "offsetof operand must be a struct or union type"},
      {kBits, "trace(offsetof(struct b, f));", "D_OFFSETOF_BITFIELD",
       "cannot take offset of a bit-field: f"},
      {kBits, "trace(offsetof(struct b, h));", "D_TYPE_MEMBER", "h is not a member of struct b"},
      {"", "trace(sizeof (struct nothing));", "D_SIZEOF_TYPE",
       "cannot apply sizeof to an operand of unknown size"},
      {"", "trace(sizeof (void));", "D_SIZEOF_TYPE",
       "cannot apply sizeof to an operand of unknown size"},
      {"", "trace(sizeof (int (int)));", "D_SIZEOF_TYPE",
       "cannot apply sizeof to an operand of unknown size"},
      {"", "trace(sizeof (int [string]));", "D_SIZEOF_TYPE",
       "cannot apply sizeof to an operand of unknown size"},
      {kBits, "trace(sizeof (x.f));", "D_SIZEOF_BITFIELD", "cannot apply sizeof to a bit-field"},
      {kBits, "trace(&x.f);", "D_ADDROF_BITFIELD", "cannot take address of bit-field"},
      {kBits, "trace(&x);", "D_ADDROF_VAR", "cannot take address of dynamic variable"},
      {kBits, "trace(&(x.g + 1));", "D_ADDROF_LVAL", "unacceptable operand for unary & operator"},
      {"", "trace(*pid);", "D_DEREF_NONPTR", "cannot dereference non-pointer type"},
      {"void *p;", "trace(*p);", "D_DEREF_VOID", "cannot dereference pointer to void"},
      {"int (*p)(int);", "trace(*p);", "D_DEREF_FUNC", "cannot dereference pointer to function"},
      {kBits, "trace((int)x);", "D_CAST_INVAL", "invalid cast expression: \"struct b\" to \"int\""},
      {kBits, "trace((struct b)1);", "D_CAST_INVAL",
       "invalid cast expression: \"int\" to \"struct b\""},
      {kBits, "trace((int [3])x.g);", "D_CAST_INVAL",
       "invalid cast expression: \"int\" to \"int [3]\""},
      {kBits, "trace((struct malloc_type)x);", "D_CAST_INVAL",
       "invalid cast expression: \"struct b\" to \"struct malloc_type\""},
      {"struct fwd *p;", "trace(p->x);", "D_OP_INCOMPLETE",
       "operator -> cannot be applied to a forward declaration: no struct fwd definition is "
       "available"},
      {"struct fwd *p;", "trace((*p).x);", "D_OP_INCOMPLETE",
       "operator . cannot be applied to a forward declaration: no struct fwd definition is "
       "available"},
      {"int *p;", "trace(p->x);", "D_OP_SOU",
       "operator -> cannot be applied to pointer to type \"int\"; must be applied to a struct or "
       "union pointer"},
      {"int a[3];", "trace(a.x);", "D_OP_SOU",
       "operator . cannot be applied to type \"int [3]\"; must be applied to a struct or union"},
      {kBits, "trace(x->g);", "D_OP_PTR", "operator -> must be applied to a pointer"},
      {"struct fwd *p;", "trace(p + 1);", "D_OP_VFPTR",
       "operator + requires left-hand scalar operand of known size"},
      {"struct fwd *p;", "p++;", "D_OP_VFPTR", "operator ++ requires an operand of known size"},
      {"int (*p)(void);", "p--;", "D_OP_VFPTR", "operator -- requires an operand of known size"},
      {"int a[3]; int b[3];", "a = b;", "D_OP_ARRFUN",
       "operator = may not be applied to operand of type \"int [3]\""},
      {kBits, "x = 1;", "D_OP_INCOMPAT",
       "operands have incompatible types: \"struct b\" = \"int\""},
      {kBits, "x += 1;", "D_OP_INCOMPAT",
       "operands have incompatible types: \"struct b\" += \"int\""},
      {"int (*p)(int); int (*q)(char);", "p = q;", "D_OP_INCOMPAT",
       "operands have incompatible types: \"int (*)(int)\" = \"int (*)(char)\""},
      {"int a[2][3]; int *p;", "p = a;", "D_OP_INCOMPAT",
       "operands have incompatible types: \"int *\" = \"int [2][3]\""},
      // REQ: DTYPES-17
      {"enum e {A, B}; enum e x;", "trace(x == A);", "D_IDENT_AMBIG",
       "ambiguous use of operator ==: A is both a enum e enum tag and a global enumerator"},
      {"int a[int];", "trace(a);", "D_IDENT_BADREF", "array 'a' may not be referenced as scalar"},
      {"enum e {A};", "A = 1;", "D_OP_LVAL", "operator = requires modifiable lvalue as an operand"},
      {"enum e {A};", "A();", "D_FUNC_IDKIND",
       "enumerator 'A' may not be referenced as a function"},
      {"int a[args[0]];", "", "D_ARGS_NONE",
       "args[ ] may not be referenced outside of a probe clause"},
      // REQ: DTYPES-10
      {"extern int z;", "trace(z);", "D_ASRELO",
       "relocation remains against kernel symbol D`z (offset 0x0)"},
      {"extern int z;", "trace(1 + D`z);", "D_ASRELO",
       "relocation remains against kernel symbol D`z (offset 0x4)"},
      {"int f(int);", "f(1);", "D_FUNC_UNDEF", "undefined function name: f"},
      {kBits, "trace(x.h);", "D_TYPE_MEMBER", "h is not a member of struct b"},
  };
  for (const Row& row : kRows) refuse(row);
}

// An enum that no D program declared: its enumerators are no global names.
TEST(DTypes, ComparesWithTheEnumeratorsOfAKernelsEnum) {
  // REQ: DTYPES-17
  Compiled program("BEGIN {}");
  program.catalog.types().add_enum("state", {{"IDLE", 3}, {"BUSY", 5}});
  program.input.text = "enum state x; BEGIN /x != BUSY/ { trace(x < IDLE); }";
  EXPECT_TRUE(program.compile()) << program.message();
  program.input.text = "BEGIN { trace(IDLE); }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_IDENT_UNDEF");
  program.input.text = "string BUSY; BEGIN { trace(x == BUSY); }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(
      program.message(),
      "in action list: ambiguous use of operator ==: BUSY is both a enum state enum tag and a "
      "global scalar");
}

}  // namespace
}  // namespace dtmalloc::dtrace
