// SPDX-License-Identifier: BSD-2-Clause
// D libraries, the versions of the language, and what the lexer still has to say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/d_program.hpp"
#include "support/d_session.hpp"

namespace dtmalloc::dtrace {
namespace {

namespace fs = std::filesystem;
using testing::Compiled;
using testing::DSession;
using ::testing::HasSubstr;

// Two directories of libraries, and a session that searches both, "a" first.
class DLibrary : public ::testing::Test {
 protected:
  DLibrary() : root_(fs::temp_directory_path() / ("dtm_lib_" + std::to_string(getpid()))) {
    fs::create_directories(root_ / "a");
    fs::create_directories(root_ / "b");
    for (const char* directory : {"a", "b"}) {
      EXPECT_TRUE(session_.session->set_option("libdir=" + (root_ / directory).string()));
    }
  }
  ~DLibrary() override { fs::remove_all(root_); }
  void file(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  std::string run(const std::string& program) { return session_.run(program); }

  fs::path root_;
  DSession session_;
};

// REQ: DSTRUCT-19
TEST_F(DLibrary, IsThereBeforeTheFirstProgram) {
  file("a/zero.d", "inline int zero = 0;\n");
  file("a/last.d",
       "#pragma D depends_on library zero.d\n#pragma D depends_on provider dtrace\n"
       "#pragma D depends_on module kernel\ninline int last = zero + 7;\nint tally;\n");
  file("b/zero.d", "inline int zero = 100;\n");
  file("b/other.d", "inline int other = 5;\n");
  file("b/ignored.txt", "this is no D\n");
  EXPECT_EQ(run("BEGIN {tally++; printf(\"%d %d %d\", last, other, tally); exit(0)}"), "7 5 1\n");
}

// REQ: DSTRUCT-19
TEST_F(DLibrary, IsNotReadWithNolibs) {
  file("a/x.d", "inline int x = 1;\n");
  EXPECT_TRUE(session_.session->set_option("nolibs"));
  EXPECT_THAT(run("BEGIN {trace(x)}"), HasSubstr("failed to resolve x: Unknown variable name"));
}

// REQ: DSTRUCT-20 DSTRUCT-23
TEST_F(DLibrary, FailsTheProgramThatLoadsIt) {
  file("a/x.d", "inline int x = 1;\n\ninline int y = nothing;\n");
  EXPECT_THAT(run("BEGIN {}"), HasSubstr("dtrace: invalid probe specifier BEGIN {}: \"" +
                                         (root_ / "a/x.d").string() +
                                         "\", line 3: failed to resolve nothing: Unknown variable "
                                         "name\n"));
}

// REQ: DSTRUCT-20
TEST_F(DLibrary, NeedsItsDependencies) {
  file("a/x.d", "#pragma D depends_on library gone.d\n");
  EXPECT_THAT(run("BEGIN {}"), HasSubstr("failed to find dependency in libpath: gone.d\n"));
}

// REQ: DSTRUCT-20
TEST_F(DLibrary, HasNoCycles) {
  file("a/x.d", "#pragma D depends_on library y.d\n");
  file("b/y.d", "#pragma D depends_on library x.d\n");
  EXPECT_THAT(run("BEGIN {}"), HasSubstr("failed to add dependency y.d:x.d\n"));
}

// REQ: DSTRUCT-20
TEST_F(DLibrary, IsSkippedWhenAProviderIsAbsent) {
  file("a/ip.d", "#pragma D depends_on provider ip\ninline int addr = 1;\n");
  file("a/more.d", "#pragma D depends_on library ip.d\ninline int more = addr;\n");
  file("a/mod.d", "#pragma D depends_on module nothing\ninline int m = 1;\n");
  file("a/good.d", "inline int good = 3;\n");
  EXPECT_EQ(run("BEGIN {printf(\"%d\", good); exit(0)}"), "3\n");
  EXPECT_THAT(session_.add("BEGIN {trace(more)}"), HasSubstr("failed to resolve more"));
}

// REQ: DSTRUCT-21
TEST(DVersion, HidesLaterNames) {
  DSession session;
  EXPECT_TRUE(session.session->set_option("version=1.0"));
  EXPECT_EQ(session.add("int strstr; BEGIN {strstr = 5; trace(strstr); cpu = 3;}"), "");
  EXPECT_THAT(session.add("BEGIN {trace(strtoll(\"1\"))}"),
              HasSubstr("undefined function name: strtoll"));
  EXPECT_THAT(session.add("BEGIN {print(1)}"), HasSubstr("did you mean printm, printf or printa?"));
  EXPECT_THAT(session.add("BEGIN {trace(ucaller)}"), HasSubstr("failed to resolve ucaller"));
  const auto refusal = [&](const char* option) {
    auto set = session.session->set_option(option);
    return set ? std::string() : set.error().message;
  };
  EXPECT_EQ(refusal("version=1.13"), "Requested version conflicts with earlier setting");
  EXPECT_EQ(refusal("version=0.9"), "Requested version is not supported by compiler");
  EXPECT_EQ(refusal("version=1"), "Version is not properly formatted or is too large");
  EXPECT_EQ(refusal("version=1.x"), "Version is not properly formatted or is too large");
  EXPECT_EQ(refusal("version=1.4096"), "Version is not properly formatted or is too large");
  EXPECT_EQ(refusal("version=1.0"), "");
  EXPECT_THAT(DSession().add("int strstr; BEGIN {}"), HasSubstr("strstr"));
  DSession middle;
  EXPECT_TRUE(middle.session->set_option("version=1.6.2"));
  EXPECT_EQ(middle.add("BEGIN {trace(strstr(\"a\", \"b\")); cpu = 3;}"), "");
}

// REQ: DSTRUCT-25
TEST_F(DLibrary, BindsNamesToVersions) {
  file("a/x.d",
       "inline int old = 1;\ninline int new = 2;\nint var;\ninline int elem[int i] = i + 40;\n"
       "#pragma D binding \"1.5\" new\n#pragma D binding \"1.6.1\" var\n"
       "#pragma D binding \"1.6.1\" elem\n#pragma D binding \"1.0\" old\n");
  const std::string all = "BEGIN {var = 3; printf(\"%d%d%d%d\", old, new, var, elem[2])}";
  EXPECT_EQ(session_.add(all), "");
  // Another program's names are not seen, and may be used anew.
  EXPECT_TRUE(session_.session->set_option("version=1.6"));
  EXPECT_EQ(session_.add("BEGIN {printf(\"%d%d\", old, new)}"), "");
  EXPECT_THAT(session_.add("BEGIN {trace(var)}"), HasSubstr("failed to resolve var"));
  EXPECT_THAT(session_.add("BEGIN {trace(elem[1])}"), HasSubstr("elem"));
  EXPECT_EQ(session_.add("string var; BEGIN {var = \"text\"}"), "");
  EXPECT_EQ(session_.add("BEGIN {trace(strlen(var))}"), "");
  EXPECT_THAT(session_.add("#pragma D option version=1.4\ninline int more = new;", "y.d"),
              HasSubstr("failed to resolve new"));
  EXPECT_EQ(session_.add("inline int new = 7;\nBEGIN {trace(new + old)}", "z.d"), "");
  // What a program binds itself it still sees; what refused it leaves nothing behind.
  EXPECT_EQ(session_.add("int own;\n#pragma D binding \"1.9\" own\nBEGIN {own = 1}", "o.d"), "");
  EXPECT_THAT(session_.add("BEGIN {trace(own)}"), HasSubstr("failed to resolve own"));
  EXPECT_THAT(session_.add("int bad;\n#pragma D binding \"1.9\" bad\nBEGIN {nope}", "b.d"),
              HasSubstr("nope"));
  EXPECT_EQ(session_.add("int good; BEGIN {good = 1}"), "");
  EXPECT_EQ(session_.add("BEGIN {trace(good)}"), "");
  EXPECT_THAT(session_.add("#pragma D binding \"1.9\" old\nBEGIN {}", "s.d"),
              HasSubstr("#pragma binding cannot modify entity defined outside program scope"));
}

// REQ: DSTRUCT-22
TEST(DLexer, TakesSomeKeywordsAsMembers) {
  for (const char* name :
       {"probe", "provider", "self", "string", "stringof", "userland", "xlate", "translator"}) {
    const Compiled program(std::string("BEGIN { ((struct malloc_type *)arg0)->") + name + "; }");
    EXPECT_EQ(program.tag(), "D_TYPE_MEMBER") << name;
  }
  for (const char* name : {"int", "if", "struct", "this", "for", "sizeof", "inline"}) {
    const Compiled program(std::string("BEGIN { ((struct malloc_type *)arg0)->") + name + "; }");
    EXPECT_EQ(program.tag(), "D_SYNTAX") << name;
  }
}

// REQ: DSTRUCT-24
TEST(DLexer, FillsInWhatIsMissing) {
  Compiled program("BEGIN { trace($7); trace($$7); }");
  EXPECT_EQ(program.tag(), "D_MACRO_UNDEF");
  EXPECT_EQ(program.message(), "in action list: macro argument $7 is not defined");
  program.input.defaultargs = true;
  EXPECT_TRUE(program.compile()) << program.message();
  program.input.text = "BEGIN { trace($1); }";
  program.input.arguments = {"dtrace", "99999999999999999999"};
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_MACRO_OFLOW");
  EXPECT_EQ(program.message(),
            "in action list: macro argument $1 constant 99999999999999999999 results in integer "
            "overflow");
}

}  // namespace
}  // namespace dtmalloc::dtrace
