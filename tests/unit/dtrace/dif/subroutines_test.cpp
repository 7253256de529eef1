// SPDX-License-Identifier: BSD-2-Clause
// The subroutines, through D: results and edges of spec/dtrace.md 16.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::trace;
using testing::Traced;

TEST(Subroutines, ComputeTexts) {
  // REQ: DLANG-26
  struct Row {
    const char* expression;
    const char* text;
  };
  constexpr Row kRows[] = {
      {"strjoin(\"abc\", \"def\")", "abcdef"},
      {"strjoin(strjoin(\"a\", \"b\"), strjoin(\"c\", \"d\"))", "abcd"},
      {"substr(\"abcdef\", 2)", "cdef"},
      {"substr(\"abcdef\", 2, 2)", "cd"},
      {"substr(\"abcdef\", -2)", "ef"},
      {"substr(\"abcdef\", -8, 3)", "a"},
      {"substr(\"abcdef\", -8, 2)", ""},
      {"substr(\"abcdef\", 6)", ""},
      {"substr(\"abcdef\", 1, -2)", "bcd"},
      {"substr(\"abcdef\", 1, -9)", ""},
      {"substr(\"abcdef\", 0, 100)", "abcdef"},
      {"lltostr(0)", "0"},
      {"lltostr(-17)", "-17"},
      {"lltostr(255, 16)", "0xff"},
      {"lltostr(0, 16)", "0x0"},
      {"lltostr(8, 8)", "010"},
      {"lltostr(0, 8)", "0"},
      {"lltostr(-1, 16)", "0xffffffffffffffff"},
      {"lltostr(5, 2)", "101"},
      {"lltostr(35, 36)", "z"},
      {"toupper(\"aBc1\")", "ABC1"},
      {"tolower(\"aBc1\")", "abc1"},
      {"basename(\"/usr/lib\")", "lib"},
      {"basename(\"/usr/\")", "usr"},
      {"basename(\"/\")", "/"},
      {"basename(\"\")", "."},
      {"basename(\"a\")", "a"},
      {"dirname(\"/usr/lib\")", "/usr"},
      {"dirname(\"/usr/\")", "/"},
      {"dirname(\"a\")", "."},
      {"dirname(\"/\")", "/"},
      {"dirname(\"\")", "."},
      {"dirname(\"a//b//\")", "a"},
      {"strstr(\"abcabc\", \"ca\")", "cabc"},
      {"strstr(\"abc\", \"\")", "abc"},
      {"strchr(\"abcb\", 'b')", "bcb"},
      {"strrchr(\"abcb\", 'b')", "b"},
  };
  for (const Row& row : kRows) {
    const Traced got = trace(row.expression);
    EXPECT_TRUE(got.compiled) << row.expression << got.error;
    EXPECT_EQ(got.fault, Fault::none) << row.expression;
    EXPECT_EQ(got.text, row.text) << row.expression;
  }
}

TEST(Subroutines, ComputeNumbers) {
  // REQ: DLANG-26
  struct Row {
    const char* expression;
    std::int64_t value;
  };
  constexpr Row kRows[] = {
      {"strlen(\"\")", 0},
      {"strlen(\"abc\")", 3},
      {"index(\"abcabc\", \"bc\")", 1},
      {"index(\"abcabc\", \"bc\", 2)", 4},
      {"index(\"abcabc\", \"bc\", -5)", 1},
      {"index(\"abc\", \"x\")", -1},
      {"index(\"abc\", \"\", 3)", 3},
      {"index(\"abc\", \"\", 9)", 3},
      {"index(\"abc\", \"c\", 3)", -1},
      {"index(\"\", \"\")", 0},
      {"rindex(\"abcabc\", \"bc\")", 4},
      {"rindex(\"abcabc\", \"bc\", 3)", 1},
      {"rindex(\"abcabc\", \"bc\", -1)", -1},
      {"rindex(\"abc\", \"\", -1)", 0},
      {"rindex(\"abc\", \"\", 9)", 3},
      {"rindex(\"\", \"\")", 0},
      {"strtoll(\"  -12x\")", -12},
      {"strtoll(\"+7\")", 7},
      {"strtoll(\"ff\", 16)", 255},
      {"strtoll(\"x\")", 0},
      {"htons(0x1234)", 0x3412},
      {"ntohl(0x12345678)", 0x78563412},
      {"htonll(1)", std::int64_t{1} << 56},
      {"strstr(\"abc\", \"x\") == NULL", 1},
      {"rand() != rand()", 1},
  };
  for (const Row& row : kRows) {
    const Traced got = trace(row.expression);
    EXPECT_TRUE(got.compiled) << row.expression << got.error;
    EXPECT_EQ(got.fault, Fault::none) << row.expression;
    EXPECT_EQ(static_cast<std::int64_t>(got.bits), row.value) << row.expression;
  }
}

TEST(Subroutines, Fault) {
  // REQ: DLANG-26 DLANG-27
  EXPECT_EQ(trace("strlen((char *)0)").fault, Fault::badaddr);
  EXPECT_EQ(trace("strlen(stringof arg1)").fault, Fault::badaddr);
  EXPECT_EQ(trace("lltostr(1, 37)").fault, Fault::illop);
  EXPECT_EQ(trace("lltostr(1, 1)").fault, Fault::illop);
  EXPECT_EQ(trace("strtoll(\"1\", 0)").fault, Fault::illop);
  // Just inside and just outside strsize, the NUL included.
  EXPECT_EQ(trace("strjoin(\"abc\", \"defg\")", "", 8).text, "abcdefg");
  EXPECT_EQ(trace("strjoin(\"abcd\", \"efgh\")", "", 8).fault, Fault::noscratch);
  EXPECT_EQ(trace("substr(\"abcdefghij\", 0, 9)", "", 8).text, "abcdefg");
}

// A row's text, or "NULL".
std::string text_of(const std::string& expression, const std::string& statements = {},
                    std::uint32_t strsize = 256) {
  const Traced got = trace(expression, statements, strsize);
  EXPECT_TRUE(got.compiled) << expression << ": " << got.error;
  if (got.fault == Fault::badaddr && got.bits == 0 && got.desc.is_string) return "NULL";
  EXPECT_EQ(got.fault, Fault::none) << expression;
  return got.text;
}
struct TextRow {
  const char* expression;
  const char* text;
};

// REQ: DFUNCS-07
TEST(Subroutines, CleanPaths) {
  constexpr TextRow kRows[] = {
      {"/a//b/../c", "/a/c"},
      {"/a/.", "/a/."},
      {"/.", "/."},
      {"/./.", "/."},
      {"/a/./b", "/a/b"},
      {"/a/..", "/"},
      {"/a/b/..", "/a/"},
      {"a/../b", "/b"},
      {"a/..", "a"},
      {"..", ".."},
      {"../a", "../a"},
      {"/..", "/"},
      {"/../..", "/"},
      {"/../b", "/b"},
      {"", ""},
      {"/", "/"},
      {"///", "/"},
      {"a//b", "a/b"},
      {"a/", "a/"},
      {"/.a/..b/...", "/.a/..b/..."},
      {"/a/b/../../c", "/c"},
      {"/foo/bar/baz/../../.././bop", "/bop"},
  };
  for (const TextRow& row : kRows) {
    EXPECT_EQ(text_of("cleanpath(\"" + std::string(row.expression) + "\")"), row.text)
        << row.expression;
  }
  // It ends where another step might not fit.
  EXPECT_EQ(text_of("cleanpath(\"abcdefgh\")", "", 8), "abc");
}

// REQ: DFUNCS-05
TEST(Subroutines, TakeTextsApart) {
  EXPECT_EQ(text_of("strtok(\",,Carrots,,Barley,\", \",\")"), "Carrots");
  EXPECT_EQ(text_of("strtok(NULL, \",\")", "strtok(\",,Carrots,,Barley,\", \",\")"), "Barley");
  EXPECT_EQ(text_of("strtok(NULL, \",\")", "strtok(\"a,b,\", \",\"); strtok(NULL, \",\")"), "NULL");
  EXPECT_EQ(text_of("strtok(NULL, \"x\")", "strtok(\"a bxc\", \" \")"), " b");
  EXPECT_EQ(text_of("strtok(\"abc\", \"\")"), "abc");
  EXPECT_EQ(text_of("strtok(NULL, \"\")", "strtok(\"abc\", \"\")"), "NULL");
  EXPECT_EQ(text_of("strtok(\"\", \",\")"), "NULL");
  EXPECT_EQ(text_of("strtok(\",,\", \",\")"), "NULL");
  EXPECT_EQ(text_of("strtok(NULL, \",\")"), "NULL");  // nothing was begun
  // A text that begins anew; a token that is longer than a string may be.
  EXPECT_EQ(text_of("strtok(\"c,d\", \",\")", "strtok(\"a,b\", \",\")"), "c");
  EXPECT_EQ(text_of("strtok(\"abcdefghij\", \",\")", "", 8), "abcdefg");
  EXPECT_EQ(text_of("strtok(NULL, \",\")", "strtok(\"abcdefghij\", \",\")", 8), "h");
  EXPECT_EQ(trace("strtok(stringof arg1, \",\")").fault, Fault::badaddr);
  EXPECT_EQ(trace("strtok(\"a\", NULL)").fault, Fault::badaddr);
}

// REQ: DFUNCS-09
TEST(Subroutines, FindElementsOfJson) {
  struct Row {
    const char *json, *path, *text;
  };
  constexpr Row kRows[] = {
      {R"({"a": 1})", "a", "1"},
      {R"({"a": "x\"y"})", "a", R"(x\"y)"},
      {R"({"a": "é"})", "a", "é"},
      {R"({"a": "\u00e9"})", "a", R"(\u00e9)"},
      {R"({"a": "\u00g9"})", "a", "NULL"},
      {R"({"a": {"b": [true, null, {"c": false}]}})", "a.b[2].c", "false"},
      {R"({"a": {"b": [true, null, {"c": false}]}})", "a.b.2.c", "false"},
      {R"({"a": {"b": [true, null, {"c": false}]}})", "a.b", R"([true, null, {"c": false}])"},
      {R"({"a": {"b": [true, null, {"c": false}]}})", "a.b[1]", "null"},
      {R"({"a": {"b": 1}, "c": 2})", "c", "2"},
      {R"({"a": [1, 2], "c": "]}"})", "c", "]}"},
      {R"([10, 20, 30])", "1", "20"},
      {R"([10, 20, 30])", "[2]", "30"},
      {R"([10, 20, 30])", "3", "NULL"},
      {R"([10, 20, 30])", "-1", "NULL"},
      {R"([[1, 2], [3, 4]])", "[1][0]", "3"},
      {R"({"a": -1.5e+3})", "a", "-1.5e+3"},
      {R"({"a": 0x10})", "a", "NULL"},
      {R"({"a": 1-2})", "a", "NULL"},
      {R"({"a": True})", "a", "NULL"},
      {R"({"a": truth})", "a", "NULL"},
      {R"({"a": 1})", "b", "NULL"},
      {R"({"a": 1})", "a.b", "NULL"},
      {R"({"a": "x"})", "a.b", "NULL"},
      {R"({"a" 1})", "a", "NULL"},
      {R"({a: 1})", "a", "NULL"},
      {R"({"a": {"b": 1})", "a", R"({"b": 1})"},  // what follows is not looked at
      {R"({"a": {"b": 1)", "a", "NULL"},
      {R"({"a": 1, "b": 2 "c": 3})", "b", "2"},
      {R"({"a": 1, "b": 2 "c": 3})", "c", "NULL"},
      {R"(  {"a" : [ ] , "b" : 2})", "b", "2"},
      {R"({"": 5})", "", "5"},
      {R"("a")", "a", "NULL"},
      {R"(7)", "", "NULL"},
      {"", "a", "NULL"},
  };
  for (const Row& row : kRows) {
    std::string quoted;
    for (const char* c = row.json; *c != '\0'; ++c) {
      if (*c == '"' || *c == '\\') quoted += '\\';
      quoted += *c;
    }
    EXPECT_EQ(text_of("json(\"" + quoted + "\", \"" + row.path + "\")"), row.text)
        << row.json << " " << row.path;
  }
}

// REQ: DFUNCS-08
TEST(Subroutines, WriteInternetAddresses) {
  const std::string v4 =
      "this->a = (in_addr_t *)alloca(4); *this->a = htonl(0xc0a80001); this->p = this->a";
  EXPECT_EQ(text_of("inet_ntoa(this->a)", v4), "192.168.0.1");
  EXPECT_EQ(text_of("inet_ntop(AF_INET, this->a)", v4), "192.168.0.1");
  EXPECT_EQ(trace("inet_ntop(1, this->a)", v4).fault, Fault::illop);
  EXPECT_EQ(trace("inet_ntoa((in_addr_t *)arg1)").fault, Fault::badaddr);
  const auto v6 = [](const std::vector<unsigned>& groups) {
    std::string statements =
        "this->g = (uint16_t *)alloca(16); this->a = (struct in6_addr *)this->g";
    for (std::size_t i = 0; i < groups.size(); ++i) {
      statements +=
          "; this->g[" + std::to_string(i) + "] = htons(" + std::to_string(groups[i]) + ")";
    }
    return statements;
  };
  struct Row {
    std::vector<unsigned> groups;
    const char *ntop, *ntoa6;
  };
  const Row rows[] = {
      {{0xfe80, 0, 0, 0, 0x214, 0x4fff, 0xfe0b, 0x76c8}, "fe80::214:4fff:fe0b:76c8", nullptr},
      {{0x1080, 0, 0, 0, 8, 0x800, 0x200c, 0x417a}, "1080::8:800:200c:417a", nullptr},
      {{1, 2, 3, 4, 5, 6, 7, 8}, "1:2:3:4:5:6:7:8", nullptr},
      {{0, 0, 0, 0, 0, 0, 0, 0}, "::", nullptr},
      {{0, 0, 0, 0, 0, 0, 0, 1}, "::1", nullptr},
      {{1, 0, 0, 0, 0, 0, 0, 0}, "1::", nullptr},
      {{1, 0, 0, 2, 0, 0, 3, 4}, "1::2:0:0:3:4", nullptr},  // the first of equal runs
      {{1, 0, 2, 0, 0, 0, 3, 4}, "1:0:2::3:4", nullptr},
      {{1, 0, 2, 3, 4, 5, 6, 7}, "1:0:2:3:4:5:6:7", nullptr},  // one zero is no run
      {{0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0105}, "::ffff:10.0.1.5", "10.0.1.5"},
      {{0, 0, 0, 0, 0, 0, 0x0a00, 0x0105}, "::10.0.1.5", "10.0.1.5"},
      {{0, 0, 0, 0, 0, 0, 0, 2}, "::0.0.0.2", "0.0.0.2"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(text_of("inet_ntop(AF_INET6, this->a)", v6(row.groups)), row.ntop);
    EXPECT_EQ(text_of("inet_ntoa6(this->a)", v6(row.groups)),
              row.ntoa6 == nullptr ? row.ntop : row.ntoa6);
  }
}

// REQ: DFUNCS-01 DFUNCS-02
TEST(Subroutines, GiveAndFillScratch) {
  const std::string two = "this->p = (int *)alloca(8); *this->p = 5; this->p[1] = -6";
  EXPECT_EQ(static_cast<std::int64_t>(trace("this->p[0] * 10 + this->p[1]", two).bits), 44);
  EXPECT_EQ(trace("(uint64_t)alloca(1) % 8", "alloca(3)").bits, 0u);
  // Just inside and just outside.
  EXPECT_EQ(trace("0", "this->p = (char *)alloca(4); this->p[3] = 'x'").fault, Fault::none);
  EXPECT_EQ(trace("0", "this->p = (char *)alloca(4); this->p[4] = 'x'").fault, Fault::badaddr);
  EXPECT_EQ(trace("0", "this->p = (int *)((uintptr_t)alloca(8) + 1); *this->p = 1").fault,
            Fault::badalign);
  EXPECT_EQ(trace("alloca(1 << 20)").fault, Fault::noscratch);
  EXPECT_EQ(trace("alloca(-1)").fault, Fault::noscratch);
  EXPECT_EQ(trace("0", "this->p = args[0]; this->p->ks_version = 1").fault, Fault::badaddr);
  EXPECT_EQ(trace("0", "*args[0]->ks_shortdesc = 'x'").error.substr(0, 10), "D_OP_WRITE");
  const std::string copy = "this->p = alloca(8); bcopy(\"kernel\", this->p, 7)";
  EXPECT_EQ(text_of("stringof this->p", copy), "kernel");
  EXPECT_EQ(text_of("stringof this->p",
                    "this->p = alloca(8); bcopy(args[0]->ks_shortdesc, "
                    "this->p, 5)"),
            "temp");
  EXPECT_EQ(trace("0", "bcopy(\"kernel\", alloca(6), 7)").fault, Fault::badaddr);
  EXPECT_EQ(trace("0", "bcopy(\"kernel\", args[0], 1)").fault, Fault::badaddr);
  EXPECT_EQ(trace("0", "bcopy((void *)arg1, alloca(8), 8)").fault, Fault::badaddr);
  EXPECT_EQ(trace("0", "bcopy((void *)arg1, alloca(8), 0)").fault, Fault::none);
  // A structure in scratch, and what its pointers lead to.
  const std::string list =
      "this->t = (struct malloc_type *)alloca(sizeof (struct malloc_type)); "
      "this->t->ks_next = (struct malloc_type *)alloca(sizeof (struct malloc_type)); "
      "this->t->ks_next->ks_version = 9";
  EXPECT_EQ(trace("this->t->ks_next->ks_version", list).bits, 9u);
}

// REQ: DFUNCS-03
TEST(Subroutines, FindNoUserMemory) {
  for (const char* call : {"copyin(0x1234, 8)", "copyinstr(0x1234)", "copyinstr(0x1234, 5)",
                           "copyinto(0x1234, 4, alloca(4))"}) {
    const Traced got = trace(call);
    EXPECT_EQ(got.fault, Fault::badaddr) << call << got.error;
    EXPECT_EQ(got.fault_address, 0x1234u) << call;
  }
  EXPECT_EQ(trace("copyin(0x1234, 0)").fault, Fault::none);
  EXPECT_EQ(trace("copyin(0x1234, 1 << 20)").fault, Fault::noscratch);
  EXPECT_NE(trace("copyinto(0x1234, 4, args[0])").fault_address, 0x1234u);
  EXPECT_EQ(trace("0", "copyout(alloca(4), 0x1234, 4)").fault_address, 0x1234u);
  EXPECT_EQ(trace("0", "copyoutstr(stringof \"x\", 0x1234, 4)").fault, Fault::badaddr);
}

// REQ: DFUNCS-10
TEST(Subroutines, KnowAncestors) {
  EXPECT_EQ(trace("progenyof(pid)").bits, 1u);
  EXPECT_EQ(trace("progenyof(ppid)").bits, 1u);
  EXPECT_EQ(trace("progenyof(1)").bits, 1u);
  EXPECT_EQ(trace("progenyof(pid + 1)").bits, 0u);
}

// REQ: DFUNCS-11
TEST(Subroutines, ReferToMemory) {
  EXPECT_EQ(trace("memref(args[0], 7)[0] == (uintptr_t)args[0]").bits, 1u);
  EXPECT_EQ(trace("memref(args[0], 7)[1]").bits, 7u);
  const std::string words =
      "this->p = (char *)alloca(8); this->p[0] = 'a'; this->p[2] = 'b'; this->p[4] = 'c'";
  EXPECT_EQ(text_of("memstr(this->p, ' ', 6)", words), "a b c");
  EXPECT_EQ(text_of("memstr(this->p, '-', 5)", words), "a-b-");
  EXPECT_EQ(text_of("memstr(this->p, '-', 1)", words), "");
  EXPECT_EQ(text_of("memstr(this->p, '-', 0)", words), "NULL");
  EXPECT_EQ(trace("memstr(this->p, '-', 10)", words).fault, Fault::badaddr);
  EXPECT_EQ(trace("memstr(this->p, '-', 4097)", words).fault, Fault::illop);
}

// REQ: DFUNCS-12
TEST(Subroutines, InspectNoLocks) {
  EXPECT_EQ(trace("mutex_owned((struct mtx *)0)").fault, Fault::badaddr);
  for (const char* call :
       {"mutex_owned((struct mtx *)args[0])", "mutex_type_spin((struct mtx *)args[0])",
        "mutex_type_adaptive((struct mtx *)args[0])", "rw_iswriter((struct rwlock *)args[0])",
        "rw_read_held((struct rwlock *)args[0])", "rw_write_held((struct rwlock *)args[0])",
        "sx_isexclusive((struct sx *)args[0])", "sx_shared_held((struct sx *)args[0])",
        "sx_exclusive_held((struct sx *)args[0])"}) {
    const Traced got = trace(call);
    EXPECT_EQ(got.fault, Fault::badaddr) << call << got.error;
    EXPECT_EQ(got.type, "") << call;
  }
  EXPECT_EQ(trace("mutex_owner((struct mtx *)args[0])").fault, Fault::badaddr);
  EXPECT_EQ(trace("mutex_owned(5)").error,
            "D_PROTO_ARG in action list: mutex_owned( ) argument #1 is incompatible with "
            "prototype:\n\tprototype: struct mtx *\n\t argument: int");
}

// REQ: DFUNCS-13
TEST(Subroutines, OfSolarisAreNoneOfFreeBSD) {
  EXPECT_EQ(trace("msgsize(0)").error,
            "D_FUNC_UNDEF in action list: undefined function name: msgsize");
  EXPECT_EQ(trace("msgdsize(0)").error,
            "D_FUNC_UNDEF in action list: undefined function name: msgdsize");
  EXPECT_EQ(trace("getf(1)").error,
            "D_UNKNOWN in action list: failed to resolve type of function getf#0 (file_t *): "
            "Unknown type name");
  EXPECT_EQ(trace("getmajor(1)").error,
            "D_UNKNOWN in action list: failed to resolve type of function getmajor#0 "
            "(genunix`major_t): Unknown module name");
  EXPECT_EQ(trace("ddi_pathname(args[0], 1)").fault, Fault::illop);
}

// REQ: DFUNCS-14
TEST(Subroutines, CheckTheirArguments) {
  const auto error = [](const char* expression) { return trace(expression).error; };
  const std::string length = "D_PROTO_LEN in action list: ";
  EXPECT_EQ(error("strlen(\"a\", 2)"),
            length + "strlen( ) prototype mismatch: 2 args passed, 1 expected");
  EXPECT_EQ(error("strlen()"), length + "strlen( ) prototype mismatch: 0 args passed, 1 expected");
  EXPECT_EQ(error("strtok(\"a\")"),
            length + "strtok( ) prototype mismatch: 1 arg passed, 2 expected");
  EXPECT_EQ(error("substr(\"a\", 1, 2, 3)"),
            length + "substr( ) prototype mismatch: 4 args passed, at least 2 expected");
  EXPECT_EQ(error("copyinstr()"),
            length + "copyinstr( ) prototype mismatch: 0 args passed, at least 1 expected");
  EXPECT_EQ(error("lltostr(1, 2, 3)"),
            length + "lltostr( ) prototype mismatch: 3 args passed, at least 1 expected");
  const std::string wrong = "D_PROTO_ARG in action list: ";
  EXPECT_EQ(error("strlen(1)"),
            wrong +
                "strlen( ) argument #1 is incompatible with prototype:\n\tprototype: const "
                "char *\n\t argument: int");
  EXPECT_EQ(error("json(\"a\", 2)"),
            wrong +
                "json( ) argument #2 is incompatible with prototype:\n\tprototype: const char "
                "*\n\t argument: int");
  EXPECT_EQ(error("copyin(\"a\", 2)"),
            wrong +
                "copyin( ) argument #1 is incompatible with prototype:\n\tprototype: "
                "uintptr_t\n\t argument: string");
  EXPECT_EQ(error("inet_ntoa6((int *)0)").substr(0, 11), "D_PROTO_ARG");
  EXPECT_EQ(error("bcopy(\"a\", alloca(2), 2)"),
            "D_TRACE_VOID in action list: trace( ) may not be applied to a void expression");
}

}  // namespace
}  // namespace dtmalloc::dtrace
