// SPDX-License-Identifier: BSD-2-Clause
// userland: which expressions lead into the memory of a process, the loads from there, and that no
// process of a simulated machine has any.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dtrace/dif/dif_int.hpp"
#include "support/d_program.hpp"
#include "support/d_session.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;

// The loads of the last action's code, in their order.
std::vector<std::string> loads(const std::string& declarations, const std::string& statements) {
  const Compiled program(declarations + " dtmalloc::temp:malloc { " + statements + "; }");
  EXPECT_TRUE(program.ok) << statements << ": " << program.message();
  std::vector<std::string> names;
  if (!program.ok) return names;
  for (const std::uint32_t text : program.clause().actions.back().values.back().dif.object().text) {
    const DifOpInfo& info = dif_op_info(DifWord{text}.op());
    if (info.form == DifForm::load || info.form == DifForm::uload) names.emplace_back(info.name);
  }
  return names;
}

constexpr const char* kDeclarations =
    "struct b {int lo : 3; unsigned hi : 7; short in[4]; struct b *next;}; userland short *p; "
    "self userland short *q; this userland short *r; userland short *a[int]; userland struct b *s; "
    "inline userland short *i = (userland short *)8; inline short at[userland short *t] = *t; "
    "struct out {short x; short y;}; translator struct out < userland struct b *from > "
    "{x = from->in[0]; y = 1;};";

TEST(Userland, OpcodesByTheSizeAndTheSign) {
  // REQ: DTYPES-32
  const struct {
    const char* type;
    const char* load;
  } kRows[] = {
      {"int8_t", "uldsb"},  {"int16_t", "uldsh"},       {"int", "uldsw"},
      {"uint8_t", "uldub"}, {"uint16_t", "ulduh"},      {"uint32_t", "ulduw"},
      {"int64_t", "uldx"},  {"uint64_t", "uldx"},       {"void *", "uldx"},
      {"char", "uldsb"},    {"userland char", "uldsb"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(loads("", "trace(*(userland " + std::string(row.type) + " *)arg0)"),
              std::vector<std::string>{row.load})
        << row.type;
  }
  EXPECT_EQ(static_cast<unsigned>(DifOp::uldsb), 64U);
  EXPECT_EQ(static_cast<unsigned>(DifOp::uldx), 70U);
}

TEST(Userland, TheMarkStaysOnTheWay) {
  // REQ: DTYPES-31
  const struct {
    const char* statements;
    std::vector<std::string> loads;
  } kRows[] = {
      // What is declared so, in every scope.
      {"trace(*p)", {"uldsh"}},
      {"self->q = 0; trace(*self->q)", {"uldsh"}},
      {"this->r = 0; trace(this->r[2])", {"uldsh"}},
      {"trace(*a[1])", {"uldsh"}},
      {"trace(*i)", {"uldsh"}},
      {"trace(at[(short *)arg0])", {"uldsh"}},
      {"trace((xlate <struct out *>(s))->x)", {"uldsh"}},
      // What a variable is first given.
      {"x = (userland short *)arg0; trace(*x)", {"uldsh"}},
      {"self->x = p; trace(*self->x)", {"uldsh"}},
      {"e[1] = p; trace(*e[1])", {"uldsh"}},
      {"x = (short *)arg0; x = p; trace(*x)", {"ldsh"}},
      // Arithmetic, members, elements, addresses.
      {"trace(*(p + 1))", {"uldsh"}},
      {"trace(*(1 + p))", {"uldsh"}},
      {"trace(*(p - 1))", {"uldsh"}},
      {"trace(*++p)", {"uldsh"}},
      {"trace(*p++)", {"uldsh"}},
      {"trace(*(p = 0))", {"uldsh"}},
      {"trace(*(0, p))", {"uldsh"}},
      {"trace(*&*p)", {"uldsh"}},
      {"trace(s->in[1])", {"uldsh"}},
      {"trace((*s).in[1])", {"uldsh"}},
      {"trace(*(&s->in[1] + 1))", {"uldsh"}},
      {"trace(s->next->next->in[1])", {"uldx", "uldx", "uldsh"}},
      {"trace(s->hi)", {"ulduw"}},
      {"trace(s->lo)", {"ulduw"}},
      {"trace((stringof p)[1])", {"uldsb"}},
      {"trace(((userland string)arg0)[1])", {"uldsb"}},
      // A cast says it anew, and ?: forgets it; a number is no address.
      {"trace(*(short *)p)", {"ldsh"}},
      {"trace(*(short *)(long)p)", {"ldsh"}},
      {"trace(*(arg0 ? p : (short *)arg1))", {"ldsh"}},
      {"trace((userland int)arg0)", {}},
      {"x = (userland int)arg0; trace(x)", {}},
      {"trace(*((char *)0 + *p))", {"uldsh", "ldsb"}},
  };
  for (const auto& row : kRows)
    EXPECT_EQ(loads(kDeclarations, row.statements), row.loads) << row.statements;
}

TEST(Userland, IsAWordOfATypeAndNoTypeOfItsOwn) {
  // REQ: DTYPES-31
  const testing::Traced size = testing::trace("sizeof (userland int) + sizeof (userland char *)");
  EXPECT_EQ(size.bits, 12U) << size.error;
  for (const char* program : {
           "userland int x; int x; BEGIN { x = 1; }",
           "const userland volatile unsigned long userland x; BEGIN { x = 1; }",
           "typedef userland int user_t; struct s {userland int x; user_t y;}; user_t z; BEGIN {}",
           "int f(userland char *text); BEGIN {}",
           "BEGIN { p = (userland char *)0; p = (char *)0; q = (char *)0; q = p; }",
           "BEGIN { @[(userland int)1] = count(); @[2] = count(); a[(userland int)1] = 2; a[3]; }",
       }) {
    EXPECT_EQ(Compiled(program).message(), "") << program;
  }
  EXPECT_EQ(Compiled("int *userland x; BEGIN {}").tag(), "D_SYNTAX");
  EXPECT_EQ(Compiled("userland; BEGIN {}").tag(), "D_DECL_USELESS");
  EXPECT_EQ(Compiled("userland string int x; BEGIN {}").tag(), "D_DECL_COMBO");
}

TEST(Userland, IsInTheNamesOfTypes) {
  // REQ: DTYPES-33
  const struct {
    const char* actions;
    const char* message;
  } kRows[] = {
      {"x = (userland int *)1 + (userland char *)2;",
       "operands have incompatible types: \"userland int *\" + \"userland char *\""},
      {"x = (struct malloc_type)(userland int)1;",
       "invalid cast expression: \"userland int\" to \"struct malloc_type\""},
      {"x = (userland struct malloc_type)1;",
       "invalid cast expression: \"int\" to \"userland struct malloc_type\""},
      {"p = (userland int *)1; exit(p);",
       "exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t argument: "
       "userland int *"},
      {"exit(&*(userland int *)1);",
       "exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t argument: "
       "userland int *"},
      {"exit(stringof (userland char *)1);",
       "exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t argument: "
       "userland string"},
      {"printf(\"%f\", (userland char *)1);",
       "printf( ) argument #2 is incompatible with conversion #1 prototype:\n\tconversion: "
       "%f\n\t prototype: float, double, or long double\n\t  argument: userland char *"},
      {"exit(1 ? (userland int *)1 : 0);",
       "exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t argument: int *"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(Compiled(std::string("BEGIN { ") + row.actions + " }").message(),
              std::string("in action list: ") + row.message)
        << row.actions;
  }
}

// The fault of every way to read user memory is that of copyin().
TEST(Userland, NoProcessHasMemory) {
  // REQ: DTYPES-32 DFUNCS-03
  const std::string type = "struct s {long a[4]; char text[8]; int bit : 3;}; ";
  for (const char* action : {
           "copyin(0x1000, 4)",
           "trace(*(userland int *)0x1000)",
           "x = *(userland char *)0x1000",
           "trace(((userland struct s *)0x1000)->a[0])",
           "trace(((userland struct s *)(0x1000 - 40))->bit)",
           "(*(userland int *)0x1000)++",
           "*(userland int *)0x1000 += 1",
           "trace(*(userland struct s *)0x1000)",
           "print(*(userland struct s *)0x1000)",
           "trace(((userland struct s *)(0x1000 - 32))->text)",
           "trace((userland string)0x1000)",
           "trace(stringof (userland char *)0x1000)",
           "printf(\"%s\", stringof (userland char *)0x1000)",
           "@[stringof (userland char *)0x1000] = count()",
           "@[*(userland struct s *)0x1000] = sum(1)",
           "@ = sum(*(userland int *)0x1000)",
           "userland_text = (userland string)0x1000",
       }) {
    testing::DSession machine;
    EXPECT_EQ(machine.run(type + "BEGIN {" + action + "; printf(\"not here\");} " +
                          "ERROR {printf(\"%d %x\", arg4, arg5);}"),
              "1 1000\n")
        << action;
  }
}

// An address of the kernel is none of a process.
TEST(Userland, KernelMemoryIsNotAProcesss) {
  // REQ: DTYPES-32
  testing::DSession machine;
  ASSERT_TRUE(machine.session->set_option("quiet"));
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc /arg3 == 100 || arg3 == 128/ {"
                          "trace(args[0]->ks_version == ((struct malloc_type *)arg0)->ks_version);"
                          "trace(((userland struct malloc_type *)arg0)->ks_version);} "
                          "dtmalloc::aa:malloc {@[stringof args[0]->ks_shortdesc] = count();"
                          "@[stringof (userland char *)args[0]->ks_shortdesc] = count();} "
                          "ERROR {printf(\"%d %d;\", arg1, arg4);}"),
            "");
  machine.pair();
  machine.session->stop();
  EXPECT_TRUE(machine.out.starts_with("1 1;2 1;\n  aa  ")) << machine.out;
  EXPECT_TRUE(machine.out.ends_with(" 1\n")) << machine.out;
}

TEST(Userland, ListingsNameIt) {
  // REQ: DTYPES-32 DTYPES-33
  testing::DSession machine;
  ASSERT_EQ(machine.add("userland short *p; BEGIN {trace((userland string)p); trace(*p);}"), "");
  const std::string listing = machine.session->dump(machine.program, "dif");
  EXPECT_NE(listing.find("returns string (unknown) by user ref (size 256)\n"), std::string::npos)
      << listing;
  EXPECT_NE(machine.session->dump(machine.program, "desugared").find("((userland string)p)"),
            std::string::npos);
  EXPECT_NE(listing.find("41010001    uldsh [%r1], %r1\n"), std::string::npos) << listing;
}

TEST(Userland, TheVerifierKnowsTheLoads) {
  // REQ: DTYPES-32 DLANG-25
  const auto refusal = [](std::uint32_t load) {
    DifObject object;
    object.strings = std::string(1, '\0');
    object.text = {load, dif_registers(DifOp::ret, 0, 0, 1)};
    const auto verified = verify(std::move(object), {});
    return verified ? "" : verified.error();
  };
  for (unsigned op = 64; op <= 70; ++op) {
    const auto load = static_cast<DifOp>(op);
    EXPECT_EQ(refusal(dif_registers(load, 0, 0, 1)), "");
    EXPECT_EQ(refusal(dif_registers(load, 0, 1, 1)), "instruction 0: a reserved field is set");
    EXPECT_EQ(refusal(dif_registers(load, 8, 0, 1)), "instruction 0: register 8 does not exist");
    EXPECT_EQ(refusal(dif_registers(load, 1, 0, 0)), "instruction 0: register 0 is written");
  }
  EXPECT_EQ(refusal(71U << 24 | 1), "instruction 0: opcode 71 does not exist");
}

}  // namespace
}  // namespace dtmalloc::dtrace
