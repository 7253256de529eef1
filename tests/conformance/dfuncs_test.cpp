// SPDX-License-Identifier: BSD-2-Clause
// What D programs print by print, tracemem, printm, printf and printa: each row is a program and
// the bytes that dtrace(1) prints for it, or the refusal.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

class DFunctions : public ::testing::Test {
 protected:
  DFunctions() {
    KernelConfig config;
    config.cpus = 2;
    config.fixed_cpus = true;
    config.mem = 1ull << 30;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
  }
  ~DFunctions() override {
    session = nullptr;
    framework = nullptr;
    kernel->cpus().unbind();
  }
  // The output of a clause on BEGIN, and what was said.
  std::string run(const std::string& actions, const std::vector<std::string>& options = {"quiet"}) {
    return run_program("BEGIN {" + actions + "}", options);
  }
  std::string run_program(const std::string& program,
                          const std::vector<std::string>& options = {"quiet"}) {
    out.clear();
    err.clear();
    session = nullptr;
    session = std::make_unique<Session>(
        *framework, SessionSinks{[this](std::string_view text) { out += text; },
                                 [this](std::string_view text) { err += text; }});
    for (const std::string& option : options) {
      const auto set = session->set_option(option);
      EXPECT_TRUE(set) << option << ": " << (set ? "" : set.error().message);
    }
    if (at_exit) session->print_aggregations_at_exit();
    ProgramSource source;
    source.text = program;
    auto compiled = session->compile(source);
    if (!compiled) return compiled.error().tag + " " + compiled.error().message;
    auto enabled = session->enable(*compiled);
    if (!enabled) return enabled.error().message;
    auto started = session->go();
    if (!started) return started.error().message;
    session->stop();
    EXPECT_TRUE(out.ends_with("\n")) << program;
    return out.substr(0, out.size() - (out.empty() ? 0 : 1));
  }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  std::unique_ptr<Session> session;
  bool at_exit = false;
  std::string out, err;
};

std::string refusal(const std::string& actions) {
  const testing::Compiled program("BEGIN { " + actions + " }");
  return program.tag() + " " + program.message();
}

constexpr const char* kDumpHeading =
    "\n             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n";

// REQ: DFUNCS-20 DFUNCS-21
TEST_F(DFunctions, PrintWritesTypesAndValues) {
  EXPECT_EQ(run("print(5);"), "int 0x5\n");
  EXPECT_EQ(run("print((short)0);"), "short 0\n");
  EXPECT_EQ(run("print(\"text\");"), "string \"text\"\n");
  EXPECT_EQ(run("print('a'); print((char)'a');"), "int 0x61\nchar 'a'\n");
  EXPECT_EQ(run("print((struct malloc_type *)5);"), "struct malloc_type * 0x5\n");
  EXPECT_EQ(run("this->m = (struct malloc_type_stats *)alloca(sizeof (struct "
                "malloc_type_stats)); this->m->mts_size = 3; print(this->m->mts_size);"),
            "uint64_t 0x3\n");
  // A structure ends with its brace; what follows is of the next action.
  EXPECT_EQ(run("print(*(struct in6_addr *)alloca(16)); trace(1);"),
            "struct in6_addr {\n    union (anon) __u6_addr = {\n"
            "        uint8_t [16] __u6_addr8 = [ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 ]\n"
            "        uint16_t [8] __u6_addr16 = [ 0, 0, 0, 0, 0, 0, 0, 0 ]\n"
            "        uint32_t [4] __u6_addr32 = [ 0, 0, 0, 0 ]\n    }\n}1");
  EXPECT_EQ(run("print(1);", {}),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN int 0x1\n\n");
}

// REQ: DFUNCS-20 DFUNCS-21
TEST_F(DFunctions, PrintOfTypesThatAProgramDeclares) {
  const std::string types =
      "enum simpson { homer, bart = 5 }; struct c { uint64_t alpha; }; typedef struct foo { int a; "
      "int low :3; int high :5; struct c c; enum simpson who; enum simpson other; char text[4]; } "
      "foo_t; ";
  EXPECT_EQ(run_program(types +
                        "BEGIN { this->f = (foo_t *)alloca(sizeof (foo_t)); this->f->a = 1; "
                        "this->f->low = 5; this->f->high = 2; this->f->c.alpha = 3; this->f->who = "
                        "bart; this->f->other = 7; this->f->text[0] = 'x'; print(*this->f); "
                        "trace(1); print(this->f->who); print(this->f->other); }"),
            "foo_t {\n"
            "    int a = 0x1\n"
            "    int low :3 = 0x5\n"
            "    int high :5 = 0x2\n"
            "    struct c c = {\n"
            "        uint64_t alpha = 0x3\n"
            "    }\n"
            "    enum simpson who = bart\n"
            "    enum simpson other = 7\n"
            "    char [4] text = [ \"x\" ]\n"
            "}1enum simpson bart\n"
            "enum simpson 7\n");
}

// REQ: DFUNCS-22
TEST(DFunctionRefusals, OfPrintAndTrace) {
  EXPECT_EQ(refusal("@a = count(); print(@a);"),
            "D_PRINT_AGG in action list: print( ) may not be applied to an aggregation -- did you "
            "mean printa()?");
  EXPECT_EQ(refusal("@a = count(); trace(@a);"),
            "D_TRACE_AGG in action list: trace( ) may not be applied to an aggregation");
  EXPECT_EQ(refusal("print((void)0);"),
            "D_PRINT_VOID in action list: print( ) may not be applied to a void expression");
  EXPECT_EQ(refusal("trace((void)0);"),
            "D_TRACE_VOID in action list: trace( ) may not be applied to a void expression");
  EXPECT_EQ(refusal("print();"),
            "D_PROTO_LEN in action list: print( ) prototype mismatch: 0 args passed, 1 expected");
  EXPECT_EQ(refusal("x = print(1);").substr(0, 8), "D_OP_ACT");
}

// REQ: DFUNCS-23
TEST_F(DFunctions, TracememAlwaysDumps) {
  const std::string text = "this->p = alloca(4); bcopy(\"abc\", this->p, 4); ";
  const std::string three = std::string(kDumpHeading) +
                            "         0: 61 62 63                                         abc\n";
  const std::string four = std::string(kDumpHeading) +
                           "         0: 61 62 63 00                                      abc.\n";
  EXPECT_EQ(run(text + "tracemem(this->p, 4);"), four);
  EXPECT_EQ(run(text + "tracemem((uint64_t)this->p, 3);"), three);
  EXPECT_EQ(run(text + "tracemem(this->p, 4, 3);"), three);
  EXPECT_EQ(run(text + "tracemem(this->p, 4, strlen(\"abc\"));"), three);
  EXPECT_EQ(run(text + "tracemem(this->p, 4, 0);"), four);
  EXPECT_EQ(run(text + "tracemem(this->p, 4, 5);"), four);
  EXPECT_EQ(run("tracemem(5, 4);"), "");
  EXPECT_EQ(err,
            "dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x5) in "
            "action #1\n");
}

// REQ: DFUNCS-24
TEST_F(DFunctions, PrintmDumpsWhatMemrefRefersTo) {
  const std::string text = "this->p = alloca(4); bcopy(\"abc\", this->p, 4); ";
  EXPECT_EQ(run(text + "printm(4, memref(this->p, 2));"),
            std::string(kDumpHeading) +
                "         0: 61 62                                            ab\n");
  EXPECT_EQ(run(text + "printm(4, memref(this->p, 0));"), "");
  // More than there is room for.
  EXPECT_EQ(run(text + "printm(3, memref(this->p, 4));"), "");
  EXPECT_EQ(err, "dtrace: 1 drop on CPU 0\n");
  EXPECT_EQ(run("printm(4, memref((void *)5, 2));"), "");
  EXPECT_NE(err.find("invalid address (0x5) in action #1"), std::string::npos) << err;
}

// REQ: DFUNCS-25
TEST(DFunctionRefusals, OfMemory) {
  EXPECT_EQ(refusal("tracemem(\"abc\", 3);"),
            "D_TRACEMEM_ADDR in action list: tracemem( ) argument #1 is incompatible with "
            "prototype:\n\tprototype: pointer or integer\n\t argument: string");
  for (const char* size : {"0", "-1", "pid"}) {
    EXPECT_EQ(refusal(std::string("tracemem(5, ") + size + ");"),
              "D_TRACEMEM_SIZE in action list: tracemem( ) argument #2 must be a non-zero positive "
              "integral constant expression")
        << size;
  }
  EXPECT_EQ(refusal("tracemem(5, 4, 3, 2);"),
            "D_TRACEMEM_ARGS in action list: tracemem ( ) prototype mismatch: expected at most 3 "
            "args");
  EXPECT_EQ(refusal("tracemem(5, 4, \"x\");"),
            "D_TRACEMEM_DYNSIZE in action list: tracemem ( ) dynamic size (argument #3) must be of "
            "scalar type");
  EXPECT_EQ(refusal("tracemem(5);"),
            "D_PROTO_LEN in action list: tracemem( ) prototype mismatch: 1 arg passed, at least 2 "
            "expected");
  EXPECT_EQ(refusal("printm(0, memref((void *)0, 2));"),
            "D_PRINTM_SIZE in action list: printm( ) argument #1 must be a non-zero positive "
            "integral constant expression");
  EXPECT_EQ(refusal("printm(4, 5);"),
            "D_PRINTM_ADDR in action list: printm( ) argument #2 is incompatible with "
            "prototype:\n\tprototype: pointer\n\t argument: int");
}

// REQ: DFUNCS-26
TEST_F(DFunctions, CountTheirActions) {
  // Of a tracemem() with a size of its own the memory is the second.
  EXPECT_EQ(run("trace(1); tracemem(alloca(4), 4, 2); tracemem(5, 4, 3);"), "");
  EXPECT_NE(err.find("in action #5"), std::string::npos) << err;
  EXPECT_EQ(run("print(1); printm(4, memref(alloca(4), 4)); trace(*(int *)0);"), "");
  EXPECT_NE(err.find("in action #3"), std::string::npos) << err;
}

// REQ: DFUNCS-27
TEST_F(DFunctions, TraceOfStructuresAndArrays) {
  // Of exactly 1, 2, 4 or 8 bytes: a number.
  EXPECT_EQ(run("this->t = (struct malloc_type_internal *)alloca(88); this->t->mti_probes[1] = 1; "
                "trace(this->t->mti_probes);"),
            "4294967296");
  EXPECT_EQ(run("this->t = (struct in6_addr *)alloca(16); trace(this->t->__u6_addr);"),
            std::string(kDumpHeading) +
                "         0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  "
                "................\n");
  EXPECT_EQ(run("trace(\"ab\");", {"quiet", "rawbytes", "strsize=3"}),
            std::string(kDumpHeading) +
                "         0: 61 62 00                                         ab.\n");
}

// REQ: DFUNCS-30
TEST_F(DFunctions, PrintfConversions) {
  const struct {
    const char *arguments, *text;
  } kRows[] = {
      {"\"%d %i\", (int)-1, (int)-1", "-1 -1"},
      {"\"%d %i\", (uint32_t)0xffffffff, (uint32_t)0xffffffff", "4294967295 -1"},
      {"\"%d\", (char)-1", "-1"},
      {"\"%d %u\", (uint8_t)255, (int8_t)-1", "255 255"},
      {"\"%u %o %x %X\", (short)-1, (short)-1, (short)-1, (short)-1", "65535 177777 ffff FFFF"},
      {"\"%hd %hi\", (short)-2, (short)-2", "-2 -2"},
      {"\"%ho %hu\", (uint16_t)8, (uint16_t)9", "10 9"},
      {"\"%ld %li %lld %lli\", (long)-1, (long)2, (int64_t)-3, (long long)4", "-1 2 -3 4"},
      {"\"%lo %lu %llo %llu\", (ulong_t)8, (ulong_t)9, (uint64_t)8, (uint64_t)9", "10 9 10 9"},
      {"\"%hx %hX\", (short)-1, (ushort_t)255", "ffff FF"},
      {"\"%lx %lX %llx %llX\", (long)255, (ulong_t)255, (long long)255, (u_longlong_t)255",
       "ff FF ff FF"},
      {"\"%c%c%c\", 'a', (char)98, (short)99", "abc"},
      {"\"%lc%wc|%4lc\", 0xe9, 0x20ac, 0x41", "\u00e9\u20ac|   A"},
      {"\"%s|%10s|%-5s|%.2s\", \"abc\", \"abc\", \"abc\", \"abc\"", "abc|       abc|abc  |ab"},
      {"\"%S\", \"a\\tb\\\"\\\\\\001\\n\"", "a\\tb\\\"\\\\\\001\\n"},
      {"\"%C%C%C\", 'a', '\\n', 7", "a\\n\\a"},
      {"\"%p %p\", (void *)0xabc, 255", "abc ff"},
      {"\"%I\", \"127.0.0.1\"", "127.0.0.1"},
      {"\"%P\", (uint16_t)65535", "65535"},
      {"\"%Y\", (int64_t)0", "1970 Jan  1 00:00:00"},
      {"\"%Y\", (uint64_t)1000000000000000000", "2001 Sep  9 01:46:40"},
      {"\"%T\", (int64_t)0", "Thu, 01 Jan 1970 00:00:00 UTC"},
      {"\"%T\", (int64_t)-1", "Wed, 31 Dec 1970 23:59:59 UTC"},
      {"\"%%|%5d|%-5d|%05d|%+d|% d|%#x|%#o\", 42, 42, 42, 42, 42, 255, 8",
       "%|   42|42   |00042|+42| 42|0xff|010"},
      {"\"%'d\", 1234567", "1234567"},
      {"\"%?x|%-?x|\", 255, 255", "              ff|ff              |"},
      {"\"%*d|%*d|\", 5, 42, -5, 42", "   42|42   |"},
      {"\"%.*d|%*.*d\", 4, 42, 6, 3, 7", "0042|   007"},
      {"\"%.0d|%.d|%.0s\", 0, 5, \"abc\"", "0|5|abc"},
      {"\"text\"", "text"},
      {"\"%d\", 1 == 1", "1"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(run("printf(" + std::string(row.arguments) + ");"), row.text) << row.arguments;
  }
}

// REQ: DFUNCS-31
TEST_F(DFunctions, PrintfOfFloatingPointAndWideText) {
  const std::string one_and_a_half =
      "this->p = (uint64_t *)alloca(16); *this->p = 0x3ff8000000000000; this->d = (double "
      "*)this->p; "
      "this->q = (uint32_t *)alloca(16); *this->q = 0x3e800000; this->f = (float *)this->q; ";
  EXPECT_EQ(run(one_and_a_half +
                "printf(\"%e %E %f %g %G|%8.2f|%-8.1f|\", *this->d, *this->d, *this->d, *this->d, "
                "*this->d, *this->d, *this->d);"),
            "1.500000e+00 1.500000E+00 1.500000 1.5 1.5|    1.50|1.5     |");
  EXPECT_EQ(run(one_and_a_half + "printf(\"%f %g\", *this->f, *this->f);"), "0.250000 0.25");
  // The 80 bits of x87 in 16 bytes: 1.5 and -2^100.
  const std::string extended =
      "this->p = (uint64_t *)alloca(16); *this->p = 0xc000000000000000; this->p[1] = 0x3fff; "
      "this->q = (uint64_t *)alloca(16); *this->q = 0x8000000000000000; this->q[1] = 0xc063; "
      "this->d = (long double *)this->p; this->e = (long double *)this->q; ";
  EXPECT_EQ(run(extended + "printf(\"%Lf %Le %LG|%10.2Lf|%Lg\", *this->d, *this->d, *this->d, "
                           "*this->d, *this->e);"),
            "1.500000 1.500000e+00 1.5|      1.50|-1.26765e+30");
  EXPECT_EQ(run(extended + "printf(\"%f %g\", *this->d, *this->e);"), "1.500000 -1.26765e+30");
  // wchar_t is an int; a width counts bytes.
  const std::string wide =
      "this->w = (struct wide *)alloca(16); this->w->text[0] = 0x20ac; this->w->text[1] = 0x41; "
      "this->w->text[2] = 0xe9; this->w->text[3] = 0; ";
  const std::string declared = "typedef int wchar_t; struct wide { wchar_t text[4]; }; BEGIN {";
  run_program(declared + wide +
                  "printf(\"%ls|%ws|%9ls|%-9ws|\", this->w->text, this->w->text, this->w->text, "
                  "this->w->text);}",
              {"quiet"});
  EXPECT_EQ(out, "\u20acA\u00e9|\u20acA\u00e9|   \u20acA\u00e9|\u20acA\u00e9   |\n") << err;
}

// REQ: DFUNCS-32
TEST(DFunctionRefusals, OfFormats) {
  const struct {
    const char *arguments, *text;
  } kRows[] = {
      {"\"%d\"",
       "D_PRINTF_ARG_PROTO in action list: printf( ) prototype mismatch: conversion #1 (%d) is "
       "missing a corresponding value argument"},
      {"\"%d\", 1, 2",
       "D_PRINTF_ARG_EXTRA in action list: printf( ) prototype mismatch: only 1 arguments required "
       "by this format string"},
      {"\"%*d\", 1",
       "D_PRINTF_ARG_PROTO in action list: printf( ) prototype mismatch: conversion #1 (%d) is "
       "missing a corresponding value argument"},
      {"\"%*d\"",
       "D_PRINTF_DYN_PROTO in action list: printf( ) prototype mismatch: conversion #1 (%d) is "
       "missing a corresponding \"*\" argument"},
      {"\"%.*d\"",
       "D_PRINTF_DYN_PROTO in action list: printf( ) prototype mismatch: conversion #1 (%d) is "
       "missing a corresponding \".*\" argument"},
      {"\"%*d\", \"x\", 1",
       "D_PRINTF_DYN_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: % * d\n\t prototype: int\n\t  argument: string"},
      {"\"%s\", (char *)0",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %s\n\t prototype: char [] or string (or use stringof)\n\t  "
       "argument: char *"},
      {"\"%hd\", 1",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %hd\n\t prototype: short\n\t  argument: int"},
      {"\"%hu\", (short)1",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %hu\n\t prototype: unsigned short\n\t  argument: short"},
      {"\"%lx\", (long long)1",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %lx\n\t prototype: long\n\t  argument: long long"},
      {"\"%c\", (long)1",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %c\n\t prototype: char, short, or int\n\t  argument: long"},
      {"\"%Y\", 1",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %Y\n\t prototype: int64_t\n\t  argument: int"},
      {"\"%f\", 1",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %f\n\t prototype: float, double, or long double\n\t  argument: "
       "int"},
      {"\"%ls\", \"x\"",
       "D_PRINTF_ARG_TYPE in action list: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %ls\n\t prototype: wchar_t []\n\t  argument: string"},
      {"\"%@d\", 1",
       "D_PRINTF_AGG_CONV in action list: %@ conversion requires an aggregation and is not for use "
       "with printf( )"},
      {"5",
       "D_PRINTF_ARG_FMT in action list: printf( ) argument #1 is incompatible with "
       "prototype:\n\tprototype: string constant\n\t argument: int"},
      {"\"\"", "D_PRINTF_FMT_EMPTY in action list: printf( ) format string is empty"},
      {"\"%1$d\", 1",
       "D_SYNTAX in action list: format conversion #1 uses unsupported positional format (%n$)"},
      {"\"%**d\", 1, 2, 3",
       "D_SYNTAX in action list: format conversion #1 has more than one '*' specified for the "
       "output width"},
      {"\"%.**d\", 1, 2, 3",
       "D_SYNTAX in action list: format conversion #1 has more than one '*' specified for the "
       "output precision"},
      {"\"%.1.2d\", 1",
       "D_SYNTAX in action list: format conversion #1 has more than one '.' specified"},
      {"\"%-%\"",
       "D_SYNTAX in action list: format conversion #1 cannot be combined with other format flags: "
       "%%"},
      {"\"%\"",
       "D_SYNTAX in action list: format conversion #1 name expected before end of format string"},
      {"\"%z\", 1", "D_SYNTAX in action list: format conversion #1 is undefined: %z"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(refusal("printf(" + std::string(row.arguments) + ");"), row.text) << row.arguments;
  }
}

// REQ: DFUNCS-33
TEST_F(DFunctions, PrintaWithAFormat) {
  EXPECT_EQ(run("@a[\"x\", 5] = sum(-7); printa(\"%s|%-4d|%@d|%@5d\\n\", @a);"),
            "x|5   |-7|   -7\n");
  // Unused keys, a '*' that takes one, more values than aggregations, no value at all.
  EXPECT_EQ(run("@a[\"x\", 5] = count(); printa(\"%@d\\n\", @a);"), "1\n");
  EXPECT_EQ(run("@a[4, \"x\"] = count(); printa(\"%*s|\", @a);"), "   x|");
  EXPECT_EQ(run("@a[1] = count(); @b[1] = sum(5); printa(\"%d %@d %@d %@d;\", @a, @b);"),
            "1 1 5 5;");
  EXPECT_EQ(run("@a[1] = count(); @a[2] = count(); printa(\"hello;\", @a);"), "hello;hello;");
  // Signed and unsigned views, and the factor.
  EXPECT_EQ(run("@a = sum(-1000); normalize(@a, 10); printa(\"%@d %@i %@u %@x\", @a);"),
            "-100 -100 1844674407370955061 1999999999999935");
  EXPECT_EQ(run("@a = avg(-10); @a = avg(-10); printa(\"%@d\", @a); printa(@a);"),
            "9223372036854775798\n              -10\n");
  EXPECT_EQ(run("@a = count(); printa(\"%@Y\", @a);"), "1970 Jan  1 00:00:00");
  // What is printed is not printed again.
  EXPECT_EQ(run("@a = count(); @b = count(); printa(\"%@d\", @a);"), "1\n                1");
}

// REQ: DFUNCS-34
TEST(DFunctionRefusals, OfPrinta) {
  const std::string two = "@a[1] = count(); @b[1, 2] = count(); @c[\"x\"] = count(); ";
  EXPECT_EQ(refusal("printa();"),
            "D_PRINTA_PROTO in action list: printa( ) prototype mismatch: 0 args passed, 1 "
            "expected");
  EXPECT_EQ(refusal("printa(\"%d\");"),
            "D_PRINTA_PROTO in action list: printa( ) prototype mismatch: 1 args passed, 2 "
            "expected");
  EXPECT_EQ(refusal("printa(5);"),
            "D_PRINTA_AGGARG in action list: printa( ) argument #1 is incompatible with "
            "prototype:\n\tprototype: aggregation\n\t argument: int");
  EXPECT_EQ(refusal("printa(@x);"), "D_PRINTA_AGGBAD in action list: undefined aggregation: @x");
  EXPECT_EQ(refusal(two + "printa(@a, @b);"),
            "D_PRINTA_AGGKEY in action list: printa( ): @a and @b do not have matching key "
            "signatures: @a has 1 key, @b has 2 keys");
  EXPECT_EQ(refusal(two + "printa(@a, @c);"),
            "D_PRINTA_AGGPROTO in action list: printa( ): @c[ ] key #1 is incompatible with "
            "@a:\n       @a key #1: int\n       @c key #1: string");
  EXPECT_EQ(
      refusal(two + "printa(\"%d %d\", @a);"),
      "D_PRINTF_ARG_PROTO in action list: printa( ) prototype mismatch: conversion #2 (%d) is "
      "missing a corresponding value argument");
  EXPECT_EQ(refusal(two + "printa(\"%s\", @a);").substr(0, 17), "D_PRINTF_ARG_TYPE");
  EXPECT_EQ(refusal(two + "printa(\"%@s\", @a);"),
            "D_PRINTF_ARG_TYPE in action list: printa( ) aggregating action is incompatible with "
            "conversion #1 prototype:\n\tconversion: %s\n\t prototype: char [] or string (or use "
            "stringof)\n\t  argument: int64_t");
}

const std::string kDistribution =
    "\n           value  ------------- Distribution ------------- count    \n";

// The final newline of the output comes before what is printed at the end, and each element ends
// with a newline.
// REQ: DFUNCS-40
TEST_F(DFunctions, AggregationsWithIncrements) {
  EXPECT_EQ(run("@ = quantize(3, 6); @ = quantize(8, -2);"),
            "\n" + kDistribution +
                "               1                     |                     0        \n"
                "               2                     |@@@@@@@@@@@@@@@      6        \n"
                "               4                     |                     0        \n"
                "               8                @@@@@|                     -2       \n"
                "              16                     |                     0        \n");
  EXPECT_EQ(run("@ = lquantize(3, 0, 10, 5, -3);"),
            "\n" + kDistribution +
                "             < 0                                         | 0        \n"
                "               0 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -3       \n"
                "               5                                         | 0        \n");
  EXPECT_EQ(run("@ = llquantize(7, 10, 0, 1, 10, 2); @ = llquantize(500, 10, 0, 1, 10);"),
            "\n" + kDistribution +
                "               6 |                                         0        \n"
                "               7 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        \n"
                "               8 |                                         0        \n"
                "               9 |                                         0        \n"
                "              10 |                                         0        \n"
                "              20 |                                         0        \n"
                "              30 |                                         0        \n"
                "              40 |                                         0        \n"
                "              50 |                                         0        \n"
                "              60 |                                         0        \n"
                "              70 |                                         0        \n"
                "              80 |                                         0        \n"
                "              90 |                                         0        \n"
                "          >= 100 |@@@@@@@@@@@@@                            1        \n");
}

// REQ: DFUNCS-44
TEST_F(DFunctions, AggregationsJoinedWithDistributions) {
  EXPECT_EQ(
      run("@a[\"x\"] = count(); @b[\"x\"] = quantize(1); @a[\"y\"] = count(); printa(@a, @b);"),
      "\n  y                                                                 1" + kDistribution +
          "              -1 |                                         0        \n"
          "               0 |                                         0        \n"
          "               1 |                                         0        \n"
          "\n  x                                                                 1" +
          kDistribution +
          "               0 |                                         0        \n"
          "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
          "               2 |                                         0        \n\n");
}

// REQ: DFUNCS-45
TEST_F(DFunctions, AggregationOptions) {
  const std::string three = "@[\"b\", 1] = sum(2); @[\"a\", 3] = sum(3); @[\"c\", 2] = sum(1); ";
  const std::string print = "printa(\"%s%d \", @);";
  EXPECT_EQ(run(three + print), "c2 b1 a3 ");
  EXPECT_EQ(run(three + print, {"quiet", "aggsortrev"}), "a3 b1 c2 ");
  EXPECT_EQ(run(three + print, {"quiet", "aggsortkey"}), "a3 b1 c2 ");
  EXPECT_EQ(run(three + print, {"quiet", "aggsortkey", "aggsortkeypos=1"}), "b1 c2 a3 ");
  EXPECT_EQ(run(three + print, {"quiet", "aggsortkey", "aggsortkeypos=1", "aggsortrev"}),
            "a3 c2 b1 ");
  const std::string two = "@a[1] = sum(1); @a[2] = sum(2); @b[1] = sum(9); @b[2] = sum(8); ";
  EXPECT_EQ(run(two + "printa(\"%d \", @a, @b);"), "1 2 ");
  EXPECT_EQ(run(two + "printa(\"%d \", @a, @b);", {"quiet", "aggsortpos=1"}), "2 1 ");
  EXPECT_EQ(run("@[\"k\"] = count();", {"quiet", "agghist"}),
            "\n\n              key  ------------- Distribution ------------- count    \n"
            "                 k |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        ");
  EXPECT_EQ(run("@ = quantize(2);", {"quiet", "aggpack", "encoding=ascii"}),
            "\n\n  min .---. max  | count\n    1 : X : 4    | 1");
}

// REQ: DFUNCS-46
TEST_F(DFunctions, AggregationKeysOfEveryKind) {
  EXPECT_EQ(run("@[(char)-1, (short)-1, -1, (long)-1, \"s\"] = count();"),
            "\n 255 65535       -1               -1  s"
            "                                                                 1");
  EXPECT_EQ(run("this->p = alloca(16); @[*(struct in6_addr *)this->p] = count();"),
            "\n" + std::string(kDumpHeading) +
                "         0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  "
                "................\n                1");
  EXPECT_EQ(refusal("@a[1][2] = count();"),
            "D_AGG_MDIM in action list: improper attempt to reference @a as a multi-dimensional "
            "array");
  EXPECT_EQ(refusal("@a[1];"), "D_AGG_NULL in action list: expression has null effect: @a");
  EXPECT_EQ(refusal("@a = sum(\"x\");"),
            "D_AGG_SCALAR in action list: sum( ) argument #1 must be of scalar type");
  EXPECT_EQ(refusal("@a = quantize(1, \"x\");"),
            "D_PROTO_ARG in action list: quantize( ) increment value (argument #1) must be of "
            "scalar type");
}

// What a checker of the host says of a document: its standard output.
std::string checked(const std::string& checker, const std::string& document) {
  std::string path = (std::filesystem::temp_directory_path() / "dtm_document.XXXXXX").string();
  const int file = mkstemp(path.data());
  EXPECT_EQ(write(file, document.data(), document.size()), static_cast<ssize_t>(document.size()));
  close(file);
  FILE* pipe = popen((checker + " " + path + " 2>&1").c_str(), "r");
  std::string said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << checker << ": " << said << document;
  std::filesystem::remove(path);
  return said;
}

// REQ: DFUNCS-50 DFUNCS-51
TEST_F(DFunctions, StructuredOutput) {
  const std::string program =
      "BEGIN {trace(1); trace(\"s\"); printf(\"%d-%s\", -2, \"x\"); printf(\"text\"); @a[\"k\", 2] "
      "= "
      "sum(3); @q = quantize(1); printa(@a); printa(@q); this->p = alloca(3); bcopy(\"ab\", "
      "this->p, "
      "3); tracemem(this->p, 3); printm(4, memref(this->p, 2)); print(5); exit(3);} END {x = 1;}";
  run_program(program, {"oformat=json"});
  EXPECT_EQ(session->exit_status(), 3);
  EXPECT_EQ(err, "dtrace: description 'BEGIN ' matched 2 probes\n");
  EXPECT_EQ(checked("jq -c '.dtrace.probes | map([.cpu, .id, .provider, .module, .name])'", out),
            "[[0,1,\"dtrace\",\"\",\"BEGIN\"]]\n");
  EXPECT_EQ(
      checked("jq -c '.dtrace.probes[0].output[0:7]'", out),
      "[{\"value\":1},{\"value\":\"s\"},{\"message\":\"-2-x\"},{\"value\":-2},{\"value\":\"x\"},{"
      "\"message\":\"text\"},{\"value\":0}]\n");
  EXPECT_EQ(
      checked("jq -c '.dtrace.probes[0].output[7:9]'", out),
      "[{\"aggregation-data\":[{\"keys\":[\"k\",2],\"sum\":3}],\"aggregation-name\":\"a\"},{"
      "\"aggregation-data\":[{\"keys\":[],\"buckets\":[{\"value\":0,\"count\":0},{\"value\":1,"
      "\"count\":1},{\"value\":2,\"count\":0}]}],\"aggregation-name\":\"q\"}]\n");
  EXPECT_EQ(checked("jq -c '.dtrace.probes[0].output[9:] | map(del(.type[]?.ctfid))'", out),
            "[{\"tracemem\":\"0x616200\"},{\"printm\":\"0x6162\"},{\"type\":[{\"object-name\":"
            "\"kernel\",\"name\":\"int\",\"value\":\"0x5\"}]}]\n");
  run_program(program, {"oformat=xml,pretty"});
  checked("xmllint --noout", out);
  EXPECT_NE(out.find("<module/>"), std::string::npos);
  EXPECT_EQ(checked("xmllint --xpath 'count(/dtrace/probes/output)'", out).substr(0, 2), "12");
  run_program(program, {"oformat=html"});
  EXPECT_EQ(out.find("output"), std::string::npos);
  EXPECT_NE(out.find("<div class=\"data\" data-tag=\"message\">-2-x</div>"), std::string::npos);
  checked("xmllint --html --noout", out);
  // What prints nothing has no object.
  EXPECT_EQ(run("exit(0);", {"oformat=json"}), "{\"dtrace\": {\"probes\": []}}");
  EXPECT_EQ(run("printf(\"x\");", {"oformat=text", "quiet"}), "x");
}

// REQ: DFUNCS-52
TEST_F(DFunctions, StructuredDrops) {
  run("printm(3, memref(alloca(4), 4));", {"oformat=json"});
  EXPECT_EQ(
      checked("jq -c '.dtrace.probes[0] | del(.timestamp)'", out),
      "{\"cpu\":0,\"id\":-1,\"provider\":\"dtrace\",\"module\":\"INTERNAL\",\"function\":"
      "\"INTERNAL\",\"name\":\"DROP\",\"count\":1,\"total\":1,\"kind\":0,\"msg\":\"1 drop on CPU "
      "0\\n\"}\n");
  EXPECT_EQ(err.find("drop on CPU"), std::string::npos);
}

// REQ: DFUNCS-53
TEST_F(DFunctions, StructuredAggregationsAtTheEnd) {
  EXPECT_EQ(run("@ = count();", {"oformat=json"}), "{\"dtrace\": {\"probes\": []}}");
  at_exit = true;
  run("@[1] = avg(4); @none = sum(1); trunc(@none);", {"oformat=json"});
  EXPECT_EQ(checked("jq -c '.dtrace.probes'", out),
            "[{\"output\":[{\"aggregation-data\":[{\"keys\":[1],\"avg\":4}],\"aggregation-name\":"
            "\"_\"}]}]\n");
}

// REQ: DFUNCS-54. Nor are they looked at.
TEST_F(DFunctions, KeysThatNameAnAggregation) {
  EXPECT_EQ(run("@a[1] = count(); @a[2] = count(); clear(@a[1]); printa(\"%d %@d,\", @a);"),
            "1 0,2 0,");
  EXPECT_EQ(run("@b[1] = count(); trunc(@b[no_such_name]); printa(@b);"), "\n");
  EXPECT_EQ(run("@c[1] = sum(6); normalize(@c[\"x\", 2], 3); printa(\"%@d,\", @c[5]);"), "2,");
  EXPECT_EQ(run("@d[1] = sum(6); normalize(@d, 3); denormalize(@d[1]); printa(\"%@d,\", @d);"),
            "6,");
  EXPECT_EQ(run("@e[1] = count(); clear(@nothing[1]);").substr(0, 14), "D_CLEAR_AGGBAD");
}

}  // namespace
}  // namespace dtmalloc::dtrace
