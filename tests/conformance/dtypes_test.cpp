// SPDX-License-Identifier: BSD-2-Clause
// D's types and declarations at work: layouts against the C compiler's, variables kept by value,
// what is shared and what is rolled back.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>

#include "support/d_program.hpp"
#include "support/traced_machine.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;

struct Machine : testing::TracedMachine {
  // Compiles and enables; the text that refuses the program, or an empty string.
  std::string add(const std::string& program) {
    ProgramSource source;
    source.text = program;
    auto compiled = session->compile(source);
    if (!compiled) return compiled.error().message;
    auto enabled = session->enable(*compiled);
    return enabled ? "" : enabled.error().message;
  }
  std::string run() {
    auto started = session->go();
    if (!started) return started.error().message;
    pair();
    session->stop();
    if (out.ends_with('\n')) out.pop_back();  // the end of the output
    return out;
  }
};

// What a quiet program prints.
std::string output(const std::string& program, std::string* err = nullptr) {
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("quiet"));
  EXPECT_EQ(machine.add(program), "") << program;
  const std::string text = machine.run();
  if (err != nullptr) *err = machine.err;
  if (err == nullptr) {
    EXPECT_EQ(machine.err, "") << program;
  }
  return text;
}

TEST(DTypes, DeclareAndUse) {
  // REQ: DTYPES-01 DTYPES-05 DTYPES-07 DTYPES-19
  EXPECT_EQ(output("struct p {int x; char c; long y;}; struct p q; BEGIN {q.x = 3; q.y = -4; "
                   "printf(\"%d %d %d %d\", q.x, q.y, sizeof (struct p), offsetof(struct p, y)); "
                   "exit(0)}"),
            "3 -4 16 8");
  EXPECT_EQ(output("enum e {A, B = 5, C}; typedef enum e e_t; BEGIN {printf(\"%d\", C); exit(0)}"),
            "6");
  EXPECT_EQ(output("BEGIN { x = 1; trace(y.a); } struct { int a, b; } y; int x, *z;"), "0");
  EXPECT_EQ(output("int x; this string s; BEGIN { this->s = \"a\"; x = 7; } int n; BEGIN { "
                   "printf(\"%s%d%d\", this->s, x, n); }"),
            "a70");
}

TEST(DTypes, StartWhereADescriptionCould) {
  // REQ: DTYPES-02
  EXPECT_EQ(Compiled("uint64_t x; int*y; BEGIN { x = *y; }").message(), "");
  EXPECT_EQ(Compiled("uint64_t *x; BEGIN {}", "s.d").message(), "");
  EXPECT_EQ(
      Compiled("typedef int foo_t; foo_t x, *y; foo_t z[3]; BEGIN { x = z[0]; }", "s.d").message(),
      "");
  Compiled probe("int:::x {}");
  EXPECT_EQ(probe.message(), "probe description int:::x does not match any probes");
  EXPECT_EQ(Compiled("uint64_t {}").message(),
            "probe description :::uint64_t does not match any probes");
  EXPECT_EQ(Compiled("uint64_t {}", "s.d").message(), "line 1: syntax error near \"{\"");
  EXPECT_EQ(Compiled("volatile {}").message(), "syntax error near \"{\"");
}

// Layouts of the C compiler.
struct Bits {
  char a;
  int b : 3;
  unsigned c : 30;
  long d : 40;
  short e : 9;
  unsigned char f : 1;
  char g;
};
struct Mixed {
  char a;
  short b[3];
  struct {
    char c;
    long d;
  } e;
  union {
    int f;
    char g[6];
  } h;
  char i;
};
struct Padded {
  char a;
  int : 0;
  char b;
  int : 5;
  unsigned c : 4;
};
enum Kind : int { kFirst };
struct Tail {
  Kind k;
  void* p;
  char s[3];
};

TEST(DTypes, HaveTheLayoutOfTheCAbi) {
  // REQ: DTYPES-04 DTYPES-05 DTYPES-06 DTYPES-11
  const std::string declarations =
      "struct bits {char a; int b : 3; unsigned c : 30; long d : 40; short e : 9; unsigned char f "
      ": "
      "1; char g;}; struct mixed {char a; short b[3]; struct {char c; long d;} e; union {int f; "
      "char "
      "g[6];} h; char i;}; struct padded {char a; int : 0; char b; int : 5; unsigned c : 4;}; enum "
      "kind {FIRST}; struct tail {enum kind k; void *p; char s[3];}; ";
  EXPECT_EQ(
      output(declarations +
             "BEGIN { printf(\"%d %d %d %d\", sizeof (struct bits), sizeof (struct mixed), "
             "sizeof (struct padded), sizeof (struct tail)); printf(\" %d %d %d %d %d %d\", "
             "offsetof(struct bits, g), offsetof(struct mixed, e), offsetof(struct mixed, h), "
             "offsetof(struct mixed, i), offsetof(struct padded, b), offsetof(struct tail, s)); "
             "}"),
      std::to_string(sizeof(Bits)) + " " + std::to_string(sizeof(Mixed)) + " " +
          std::to_string(sizeof(Padded)) + " " + std::to_string(sizeof(Tail)) + " " +
          std::to_string(offsetof(Bits, g)) + " " + std::to_string(offsetof(Mixed, e)) + " " +
          std::to_string(offsetof(Mixed, h)) + " " + std::to_string(offsetof(Mixed, i)) + " " +
          std::to_string(offsetof(Padded, b)) + " " + std::to_string(offsetof(Tail, s)));
  // The same bytes: the struct as the C compiler fills it.
  union {
    Bits bits;
    unsigned char bytes[sizeof(Bits)];
  } filled = {};
  filled.bits.a = 1;
  filled.bits.b = -3;
  filled.bits.c = 0x2abcdef1;
  filled.bits.d = -77777777777;
  filled.bits.e = -200;
  filled.bits.f = 1;
  filled.bits.g = 'g';
  std::string want;
  for (const unsigned char byte : filled.bytes) want += std::to_string(byte) + " ";
  std::string program = declarations + "union {struct bits b; unsigned char c[" +
                        std::to_string(sizeof(Bits)) +
                        "];} x; BEGIN { x.b.a = 1; x.b.b = -3; x.b.c = 0x2abcdef1; x.b.d = "
                        "-77777777777; x.b.e = -200; x.b.f = 1; x.b.g = 'g'; }";
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    program += " BEGIN { printf(\"%d \", x.c[" + std::to_string(i) + "]); }";
  }
  EXPECT_EQ(output(program), want);
}

TEST(DTypes, HaveTheSizesOfLp64) {
  // REQ: DTYPES-04
  EXPECT_EQ(output("BEGIN { printf(\"%d%d%d%d%d%d%d%d %d\", sizeof (char), sizeof (short), sizeof "
                   "(int), sizeof (long), sizeof (long long), sizeof (char *), sizeof (float), "
                   "sizeof (_Bool), sizeof (long double)); }"),
            "12488841 16");
  constexpr const char* kTypedefs[][2] = {{"int8_t", "char"},
                                          {"int16_t", "short"},
                                          {"int32_t", "int"},
                                          {"int64_t", "long"},
                                          {"intptr_t", "long"},
                                          {"ssize_t", "long"},
                                          {"ptrdiff_t", "long"},
                                          {"uint8_t", "unsigned char"},
                                          {"uchar_t", "unsigned char"},
                                          {"uint16_t", "unsigned short"},
                                          {"ushort_t", "unsigned short"},
                                          {"uint32_t", "unsigned int"},
                                          {"uint_t", "unsigned int"},
                                          {"uint64_t", "unsigned long"},
                                          {"ulong_t", "unsigned long"},
                                          {"uintptr_t", "unsigned long"},
                                          {"size_t", "unsigned long"},
                                          {"u_longlong_t", "unsigned long long"},
                                          {"id_t", "int"},
                                          {"pid_t", "int"},
                                          // REQ: DTYPES-25
                                          {"in_addr_t", "unsigned int"},
                                          {"ipaddr_t", "unsigned int"},
                                          {"hrtime_t", "long long"}};
  TypeTable types;
  for (const auto& [name, target] : kTypedefs) {
    EXPECT_EQ(types.resolve(types.find(name)), types.find(target)) << name;
  }
}

TEST(DTypes, BitFieldsKeepTheirNeighbours) {
  // REQ: DTYPES-06 DTYPES-18 DTYPES-27
  EXPECT_EQ(
      output("struct b {unsigned a : 3; int b : 5; unsigned long c : 40; char d;} x; this "
             "struct b l; BEGIN {x.a = 9; x.b = -3; x.c = 0xfffffffffff; x.d = 1; this->l = x; "
             "this->l.b++; this->l.a += 8; printf(\"%d %d %x %d %d %d %d\", x.a, x.b, x.c, x.d, "
             "this->l.b, this->l.a, x.b);}"),
      "1 -3 ffffffffff 1 -2 1 -3");
  // The value of an assignment is what was assigned, not what the field holds.
  EXPECT_EQ(output("struct b {int a : 3;} x; BEGIN { y = (x.a = 12); printf(\"%d %d\", y, x.a); }"),
            "12 -4");
  // A field of 3 unsigned bits has the rank 4: a char decides.
  EXPECT_EQ(
      output("struct b {unsigned a : 3;} x; char c, d; BEGIN { x.a = d = 1; c = -d; trace(x.a "
             "> c); trace((unsigned)x.a > c); }"),
      "10");
  EXPECT_EQ(
      output("struct b {long a : 64; int b : 32; uint8_t c : 8;} x; BEGIN { x.a = -2; x.b = -3; "
             "x.c = 255; x.c++; printf(\"%d %d %d\", x.a, x.b, x.c); }"),
      "-2 -3 0");
}

TEST(DTypes, TraceBySize) {
  // REQ: DTYPES-27
  Machine machine;
  EXPECT_EQ(
      machine.add("struct s {char c[8];} x; struct b {unsigned a : 3; unsigned b : 12; "
                  "unsigned c : 20;} y; int z[2]; BEGIN { x.c[0] = 2; y.a = 5; y.b = 99; y.c = "
                  "70000; z[1] = 1; trace(x); trace(y.a); trace(y.b); trace(y.c); trace(z); "
                  "exit(0); }"),
      "");
  const std::string text = machine.run();
  EXPECT_NE(text.find("                 2   5    99    70000       4294967296"), std::string::npos)
      << text;
}

TEST(DTypes, ArraysAndPointers) {
  // REQ: DTYPES-08 DTYPES-15 DTYPES-16
  EXPECT_EQ(output("int m[3][4]; char s[8]; BEGIN {m[1][2] = 7; m[2][0] = 9; s[0] = 104; s[1] = "
                   "105; printf(\"%d %d %d %d %s\", m[1][2], m[2][0], m[0][6], sizeof (m), "
                   "stringof(s));}"),
            "7 9 7 48 hi");
  EXPECT_EQ(
      output("struct e {int a; long b;}; struct e t[4]; BEGIN { this->p = &t[1]; this->p->b = "
             "5; (this->p + 1)->b = 6; this->q = this->p + 2; this->q->a = 8; printf(\"%d %d %d "
             "%d %d\", t[1].b, t[2].b, t[3].a, this->q - this->p, sizeof (*this->p)); }"),
      "5 6 8 2 16");
  EXPECT_EQ(
      output("union u {int i; char c[4]; } v; struct n {struct n *next; union u w[2]; string "
             "t;} n1, n2; BEGIN {v.i = 0x41424344; n1.w[1] = v; n1.t = \"hello\"; n2.t = n1.t; "
             "n1.next = 0; printf(\"%c %c %s %c %d\", v.c[0], n1.w[1].c[3], n2.t, n2.t[1], "
             "sizeof (n1)); }"),
      "D A hello e 272");
  EXPECT_EQ(output("int (*f)(int, char *), (*g[2])(void), *(*h)[3]; int proto(int x, ...); BEGIN { "
                   "printf(\"%d %d %d\", sizeof (f), sizeof (g), sizeof (*h)); trace(f == 0); }"),
            "8 16 241");
}

TEST(DTypes, AStringIsAsLongAsStrsize) {
  // REQ: DTYPES-28
  const std::string program =
      "struct s {char c; string t; int n;}; struct s x, y; string a[3]; BEGIN { x.t = "
      "\"0123456789abcdef-and-more\"; x.n = 7; y = x; a[1] = y.t; a[2] = \"z\"; "
      "printf(\"%d %d %d %d %s %s %s %d\", sizeof (struct s), sizeof (x.t), sizeof (a), "
      "offsetof(struct s, n), x.t, a[1], a[2], y.n); }";
  EXPECT_EQ(output("#pragma D option strsize=16\n" + program),
            "24 16 48 20 0123456789abcdef 0123456789abcdef z 7");
  EXPECT_EQ(output("#pragma D option strsize=512\n" + program),
            "520 512 1536 516 0123456789abcdef-and-more 0123456789abcdef-and-more z 7");
  // What is declared after the option, in whichever program, has the new size.
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("quiet"));
  EXPECT_EQ(machine.add("typedef string text; text a[2]; BEGIN { a[1] = \"a\"; }"), "");
  EXPECT_TRUE(machine.session->set_option("strsize=32"));
  EXPECT_EQ(machine.add("struct s {text t[2];}; text b[2]; BEGIN { printf(\"%d %d %d\", sizeof "
                        "(text), sizeof (struct s), sizeof (b)); }"),
            "");
  EXPECT_EQ(machine.run(), "32 64 64");
}

TEST(DTypes, AreNestedSoDeep) {
  // REQ: DTYPES-29
  const auto chain = [](int levels, std::string text, auto&& line) {
    for (int i = 1; i <= levels; ++i) text += line(std::to_string(i), std::to_string(i - 1));
    return text;
  };
  const auto array = [](const std::string& now, const std::string& before) {
    return "typedef a" + before + " a" + now + "[1];\n";
  };
  const auto pointer = [](const std::string& now, const std::string& before) {
    return "typedef p" + before + " *p" + now + ";\n";
  };
  const auto structure = [](const std::string& now, const std::string& before) {
    return "struct s" + now + " {struct s" + before + " m;};\n";
  };
  // 2^n ways through the parameters.
  const auto functions = [](const std::string& now, const std::string& before) {
    return "typedef void (*f" + now + ")(f" + before + ", f" + before + ");\ntypedef void (*g" +
           now + ")(g" + before + ", g" + before + ");\n";
  };
  const std::string type_of_functions = "typedef int A; typedef A *f0; typedef int *g0;\n";
  const auto refused = [](const std::string& text) {
    const Compiled program(text + "BEGIN {}", "script.d");
    EXPECT_EQ(program.tag(), "D_SIM_NESTING");
    EXPECT_NE(program.message().find(": type is nested deeper than 1000 levels"), std::string::npos)
        << program.message();
  };
  EXPECT_EQ(Compiled(chain(1000, "typedef int a0;", array) + "a1000 x; BEGIN {}").message(), "");
  EXPECT_EQ(Compiled(chain(999, "struct s0 {int m;};", structure) + "BEGIN {}").message(), "");
  refused(chain(1001, "typedef int a0;", array));
  refused(chain(1001, "typedef int p0;", pointer));
  refused(chain(1000, "struct s0 {int m;};", structure));
  refused(chain(501, type_of_functions, functions));
  refused("inline int " + std::string(1001, '*') + "x = 0;");
  EXPECT_EQ(output(chain(900, "typedef int a0;", array) +
                   "struct q {a900 m;}; struct q v; BEGIN { print(v); }")
                .substr(0, 18),
            "struct q {\n    a90");
  EXPECT_EQ(Compiled(chain(400, type_of_functions, functions) + "f400 x; g400 y; BEGIN { x = y; }")
                .message(),
            "");
  EXPECT_EQ(Compiled(chain(400, "typedef long f0; typedef int g0;", functions) +
                     "f400 x; g400 y; BEGIN { x = y; }")
                .tag(),
            "D_OP_INCOMPAT");
}

TEST(DTypes, StructsAreCopied) {
  // REQ: DTYPES-14 DTYPES-19 DTYPES-20
  EXPECT_EQ(
      output("struct in {int a; int b[2];}; struct out {char c; struct in i;}; struct out x, "
             "y; BEGIN { x.i.b[1] = 4; x.c = 'x'; y = x; x.i.b[1] = 5; z = y.i; y.i.a = 9; w = "
             "(x = y); printf(\"%d %d %d %c %d\", y.i.b[1], z.b[1], z.a, w.c, x.i.a); }"),
      "4 4 0 x 9");
  EXPECT_EQ(output("dtmalloc:::malloc { x = *args[0]; this->s = *args[2]; printf(\"%s %d %d\", "
                   "stringof(x.ks_shortdesc), this->s.mts_numallocs, sizeof (x) == sizeof (struct "
                   "malloc_type)); }"),
            "aa 1 1");
  // A copy from where nothing is faults, and nothing changes.
  std::string err;
  EXPECT_EQ(
      output("struct s {int a;} x; BEGIN { x.a = 3; x = *(struct s *)16; } BEGIN { trace(x.a); "
             "}",
             &err),
      "3");
  EXPECT_NE(err.find("invalid address (0x10) in action #2"), std::string::npos) << err;
}

TEST(DTypes, EnumsCompareWithTheirOwn) {
  // REQ: DTYPES-07 DTYPES-17
  EXPECT_EQ(
      output("enum e {A, B = -5, C, D = 'x', E = sizeof (int), F = E + 1, G = A}; enum e x; "
             "BEGIN { x = B; printf(\"%d %d %d %d %d %d %d %d\", A, x, C, D, E, F, B == x, G); "
             "}"),
      "0 -5 -4 120 4 5 1 0");
  EXPECT_EQ(
      output("BEGIN { printf(\"%d %d %d %d %d %d\", EINVAL, EINTEGRITY, SIGKILL, SIGUSR2, "
             "AF_INET, AF_INET6); trace(DTRACEFLT_ILLOP); trace(sizeof (struct in6_addr)); }"),
      "22 97 9 31 2 28316");
}

TEST(DTypes, NameTheirModule) {
  // REQ: DTYPES-03
  EXPECT_EQ(output("struct malloc_type {int z;}; D`int i; dtmalloc:::malloc { printf(\"%d %s %d %d "
                   "%d\", sizeof (struct malloc_type), stringof(args[0]->ks_shortdesc), sizeof "
                   "(struct kernel`malloc_type) > 4, sizeof (struct D`malloc_type), sizeof "
                   "(C`long)); }"),
            "4 aa 1 4 8");
  Compiled other("struct D`malloc_type *x; BEGIN {}");
  EXPECT_EQ(other.message(), "failed to resolve type struct D`malloc_type: Unknown type name");
}

TEST(DTypes, SharedByLaterProgramsOnly) {
  // REQ: DTYPES-23
  Compiled program(
      "struct s {int a;}; struct f; enum e {A = 4}; typedef struct s s_t; s_t x; self "
      "int t; extern int z; BEGIN {}");
  ASSERT_TRUE(program.ok) << program.message();
  program.input.text =
      "struct f {long b;}; enum g {B}; typedef int new_t; new_t y; struct f v; int w[A]; BEGIN { "
      "trace(nothing); }";
  EXPECT_FALSE(program.compile());
  for (const char* gone : {"trace(B)", "trace(sizeof (struct f))", "trace((new_t)1)", "trace(y)",
                           "trace(v.b)", "trace(w[0])"}) {
    program.input.text = std::string("BEGIN { ") + gone + "; }";
    EXPECT_FALSE(program.compile()) << gone;
  }
  program.input.text =
      "struct f {char c[5];}; enum g {C, B}; typedef long new_t; new_t y; BEGIN { x.a = A; trace(B "
      "+ "
      "sizeof (struct f) + sizeof (y) + sizeof (s_t)); }";
  EXPECT_TRUE(program.compile()) << program.message();
  EXPECT_EQ(program.space.variables.size(), 3U);
}

TEST(DTypes, DescribeVariables) {
  // REQ: DTYPES-09
  const Compiled program(
      "int g; self string s; this long l; int a[string, struct in6_addr *, int]; "
      "self uint8_t b[int]; BEGIN {}");
  ASSERT_TRUE(program.ok) << program.message();
  const VariableList& list = program.space.variables;
  ASSERT_EQ(list.size(), 5U);
  EXPECT_EQ(list[1].scope, Scope::thread);
  EXPECT_TRUE(list[1].value.is_string);
  EXPECT_EQ(list[2].scope, Scope::local);
  EXPECT_TRUE(list[3].array);
  ASSERT_EQ(list[3].keys.size(), 3U);
  EXPECT_TRUE(list[3].keys[0].is_string);
  EXPECT_EQ(list[3].keys[2].size, 4U);
  EXPECT_EQ(list[3].id, kVarUser + 1);
  EXPECT_EQ(list[4].scope, Scope::thread);
  EXPECT_EQ(list[4].value.size, 1U);
  EXPECT_EQ(program.space.globals, 2U);
  EXPECT_EQ(program.space.threads, 2U);
}

TEST(DTypes, LargeVariablesAreRefusedWhenEnabled) {
  // REQ: DTYPES-22
  Machine machine;
  EXPECT_EQ(machine.add("char a[16384]; BEGIN { a[16383] = 1; trace(a[16383]); }"), "");
  EXPECT_EQ(machine.add("char b[16385]; BEGIN { b[0] = 1; }"),
            "failed to enable 'char b[16385]': DIF program content is invalid");
  EXPECT_EQ(machine.add("struct big {long a[4000];}; this struct big c; BEGIN /this->c.a[1]/ {}"),
            "failed to enable 'struct big ': DIF program content is invalid");
  // One that no clause uses takes no room.
  EXPECT_EQ(machine.add("long d[4000000000]; BEGIN { trace(sizeof (d)); }"), "");
  EXPECT_NE(machine.run().find("32000000000"), std::string::npos) << machine.out;
}

TEST(DTypes, NamesOfTypes) {
  // REQ: DTYPES-08 DTYPES-24
  constexpr const char* kRows[][2] = {
      {"int x[3]", "int [3]"},
      {"int x[2][3]", "int [2][3]"},
      {"int *x[3]", "int *[3]"},
      {"int (*x)[3]", "int (*)[3]"},
      {"struct foo *x", "struct foo *"},
      {"char **x", "char **"},
      {"int (*x)(int)", "int (*)(int)"},
      {"void (*x)(const char *, ...)", "void (*)(char *, ...)"},
      {"int (*(*x)(int))[2]", "int (*(*)(int))[2]"},
      {"uint_t *x", "uint_t *"},
      {"string x", "string"},
      {"unsigned x", "unsigned int"},
      {"long int unsigned x", "unsigned long"},
      {"struct {int a;} x", "struct (anon)"},
      {"int (*x)[string]", "void *"},  // to an associative array, which has no type of its own
  };
  for (const auto& [declaration, name] : kRows) {
    const Compiled program("struct foo {int a;}; struct bar {int a;} y; " +
                           std::string(declaration) + "; BEGIN { y = x; }");
    EXPECT_EQ(program.message(),
              "in action list: operands have incompatible types: \"struct bar\" "
              "= \"" +
                  std::string(name) + "\"")
        << declaration;
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
