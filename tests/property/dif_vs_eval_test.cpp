// SPDX-License-Identifier: BSD-2-Clause
// Law 7: what the bytecode computes is what the tree-walking evaluator says, for every generated
// expression, faults and variables included.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "dtrace/dif/dif_int.hpp"
#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/lang_int.hpp"
#include "reference/d_eval.hpp"
#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using reference::EvalFault;
using reference::Evaluator;
using reference::EvalValue;

constexpr std::uint32_t kStringSize = 32;

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

// Structs and unions with bit-fields, arrays, enumerators.
constexpr const char* kDeclarations =
    "struct s {int8_t a; uint16_t b; int c : 5; unsigned d : 11; long e : 37; unsigned char f : 8; "
    "struct {char x[4]; int y[2][2];} n;}; enum e {E0, E1 = 7, E2 = -3}; struct s s0, s1, t[2]; "
    "this struct s s2; int z[4]; union {uint64_t whole; short part[4]; struct {unsigned long low : "
    "63; unsigned long high : 1;} bits;} u;\n"
    "inline int64_t whole = u.whole + z[1]; inline short narrow = pid * 70000; inline int seven = "
    "7; "
    "inline int64_t twice[int64_t i] = i + i; inline char part[long v, int k] = v >> (k & 15); "
    "inline uint16_t deep[int i] = twice[part[i, 1]] + narrow; "
    "inline string both[string a, string b] = strjoin(b, a);\n";

// Random programs, as text.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::string program() {
    std::string text =
        "g0 = (long)0; g1 = (int8_t)1; g2 = (uint32_t)2; g3 = (short)3; g4 = (uint64_t)4; "
        "this->l0 = 5; this->l1 = (unsigned char)6; t0 = \"\"; this->t1 = \"one\"; ";
    text +=
        "self->i0 = 7; self->i1 = (uint16_t)8; a0[(long)1, \"a\"] = 5; self->a1[(short)2] = 6; "
        "self->t2 = \"two\"; a2[1] = \"three\"; ";
    const unsigned statements = 1 + pick(4);
    for (unsigned i = 0; i < statements; ++i) text += statement() + "; ";
    text += pick(3) == 0 ? text_expression(3) : integer(4);
    // What they hold now.
    return text +
           "; self->i0; self->i1; a0[1, \"a\"]; a0[1, \"temp\"]; a0[0, \"\"]; self->a1[2]; "
           "self->a1[-1]; a2[1] == self->t2; a2[0] < self->t2; self->t2 == \"two\"";
  }

 private:
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }
  template <std::size_t N>
  std::string one_of(const char* const (&list)[N]) {
    return list[pick(N)];
  }

  std::string variable() {
    switch (pick(12)) {
      case 0:
        return "a0[" + integer(1) + ", " + text_expression(pick(3) == 0 ? 1 : 0) + "]";
      case 1:
        return "a0[" + one_of({"0", "1", "g2++", "--self->i0"}) + ", " +
               one_of({"\"a\"", "\"\"", "\"temp\"", "probefunc", "self->t2"}) + "]";
      case 2:
        return "self->a1[" + integer(1) + "]";
      case 3:
        return one_of({"self->a1[2]", "self->a1[-1]", "self->a1[self->i0]"});
      case 4:
      case 5:
        return one_of({"self->i0", "self->i1"});
      default:
        return one_of({"g0", "g1", "g2", "g3", "g4", "this->l0", "this->l1"});
    }
  }
  std::string text_variable() {
    return one_of({"t0", "this->t1", "t0", "self->t2", "a2[0]", "a2[1]", "a2[g0]"});
  }
  std::string statement() {
    switch (pick(7)) {
      case 0:
        return text_variable() + " = " + text_expression(2);
      case 4:
        return one_of({"s0", "s1", "this->s2", "t[1]", "t[g2 & 1]"}) + " = " + object();
      case 5:
      case 6:
        return place() +
               one_of({" = ", " = ", " += ", " -= ", " *= ", " |= ", " ^= ", " <<= ", " >>= "}) +
               integer(2);
      case 1:
        return variable() +
               one_of({" += ", " -= ", " *= ", " /= ", " %= ", " |= ", " <<= ", " >>= "}) +
               integer(2);
      default:
        return variable() + " = " + integer(3);
    }
  }

  // An object in memory that integers can be stored to.
  std::string place() {
    return one_of({"s0.a", "s1.b", "s0.c", "this->s2.d", "s1.e", "s0.n.x[1]", "s1.n.y[1][0]",
                   "z[2]", "z[g0 & 3]", "t[1].c", "t[0].e", "this->s2.n.x[g3 & 3]", "u.whole",
                   "u.part[2]", "u.bits.low", "u.bits.high", "(&t[1])->f", "*(&z[1] + 1)",
                   "(*(&s1)).b"});
  }
  std::string object() {
    return one_of(
        {"s0", "s1", "this->s2", "t[0]", "*(&t[1])", "(s1 = t[0])", "(g1 > 2 ? s0 : this->s2)"});
  }

  std::string constant() {
    return one_of({"0",
                   "1",
                   "2",
                   "3",
                   "7",
                   "63",
                   "64",
                   "127",
                   "128",
                   "255",
                   "256",
                   "65535",
                   "32768",
                   "2147483647",
                   "2147483648",
                   "4294967295",
                   "0xffffffff",
                   "0x8000000000000000",
                   "0xffffffffffffffff",
                   "9223372036854775807",
                   "1u",
                   "5ul",
                   "017",
                   "'a'",
                   "'\\n'",
                   "'ab'",
                   "NULL",
                   "sizeof (int)",
                   "sizeof (\"abc\")",
                   "sizeof (g1)",
                   "DTRACEFLT_ILLOP",
                   "E1",
                   "E2",
                   "EINVAL",
                   "sizeof (struct s)",
                   "offsetof(struct s, n)"});
  }

  std::string integer(unsigned depth) {
    if (depth == 0 || pick(8) == 0) {
      switch (pick(6)) {
        case 0:
        case 1:
          return constant();
        case 2:
          return variable();
        case 5:
          return place();
        case 3:
          return one_of({"arg0", "arg1", "arg3", "arg4", "args[3]", "args[4]", "pid", "tid", "cpu",
                         "timestamp", "arg9"});
        default:
          return one_of({"args[0]->ks_version", "args[2]->mts_memalloced", "args[2]->mts_size",
                         "args[2]->mts_numallocs", "*args[0]->ks_shortdesc",
                         "args[0]->ks_shortdesc[1]", "args[0]->ks_next->ks_version"});
      }
    }
    const unsigned less = depth - 1;
    switch (pick(18)) {
      case 16:
        return one_of({"whole", "narrow", "seven", "deep[narrow]"});
      case 17:
        switch (pick(3)) {
          case 0:
            return "twice[" + integer(less) + "]";
          case 1:
            return "part[" + integer(less) + ", " + integer(less) + "]";
          default:
            return "deep[" + integer(less) + "]";
        }
      case 0:
        return "(" + integer(less) + one_of({" / ", " % "}) + integer(less) + ")";
      case 1:
        return "(" + integer(less) + one_of({" << ", " >> "}) + integer(less) + ")";
      case 2:
      case 3:
        return "(" + integer(less) + one_of({" < ", " <= ", " > ", " >= ", " == ", " != "}) +
               integer(less) + ")";
      case 4:
        return "(" + integer(less) + one_of({" && ", " || ", " ^^ "}) + integer(less) + ")";
      case 5:
        return "(" + integer(less) + " ? " + integer(less) + " : " + integer(less) + ")";
      case 6:
      case 7:
        return "(" +
               one_of({"(int8_t)", "(uint8_t)", "(int16_t)", "(uint16_t)", "(int)", "(uint32_t)",
                       "(long)", "(uint64_t)", "(char)"}) +
               integer(less) + ")";
      case 8:
        return one_of({"- ", "~", "!", "+ "}) + "(" + integer(less) + ")";
      case 9:
        return "(" + text_expression(less) +
               one_of({" < ", " <= ", " > ", " >= ", " == ", " != "}) + text_expression(less) + ")";
      case 10:
        switch (pick(5)) {
          case 0:
            return "strlen(" + text_expression(less) + ")";
          case 1:
            return "index(" + text_expression(less) + ", " + text_expression(less) + ", " +
                   one_of({"-1", "0", "1", "2", "9"}) + ")";
          case 2:
            return "rindex(" + text_expression(less) + ", " + text_expression(less) + ")";
          case 3:
            return "strtoll(" + text_expression(less) + ")";
          default:
            return "htons((uint16_t)" + integer(less) + ")";
        }
      case 11:
        return one_of({"++", "--"}) + (pick(2) == 0 ? variable() : place());
      case 12:
        return "(" + (pick(2) == 0 ? variable() : place()) + one_of({" = ", " += ", " ^= "}) +
               integer(less) + ")";
      case 13:
        if (pick(6) == 0) {
          return one_of({"*(userland int8_t *)(arg0 + 8)", "((userland struct s *)arg0)->e",
                         "(long)*(userland void **)arg2", "((userland short *)arg1)[2]",
                         "((userland struct s *)arg0)->n.x[1]",
                         "*(uint16_t *)(userland uint16_t *)arg0",
                         "((userland struct malloc_type *)arg0)->ks_shortdesc[0]",
                         "*(1 + (userland uint32_t *)arg2)", "**(userland int **)arg0"});
        }
        return "*(" + one_of({"char", "short", "int", "uint64_t"}) + " *)(" +
               one_of({"arg0", "arg2", "arg1", "(arg0 + 200)"}) + " + " +
               one_of({"0", "4", "108"}) + ")";
      default:
        return "(" + integer(less) + one_of({" + ", " - ", " * ", " & ", " | ", " ^ "}) +
               integer(less) + ")";
    }
  }

  std::string text_expression(unsigned depth) {
    if (depth == 0 || pick(4) == 0) {
      return one_of({"\"\"",
                     "\"a\"",
                     "\"temp\"",
                     "\"/usr/lib/\"",
                     "\"-12x\"",
                     "\"zebra\\377\"",
                     "execname",
                     "probefunc",
                     "stringof args[0]->ks_shortdesc",
                     "t0",
                     "this->t1",
                     "self->t2",
                     "a2[1]",
                     "stringof arg0",
                     "(string)args[0]->ks_shortdesc",
                     "\"newsyslog\"",
                     "\"a text of twenty-five chars\"",
                     "stringof arg1",
                     "\"/a/./b//../c/..\"",
                     "\"../x/.y/..\"",
                     "\"[1,{'a':[2.5e1,'b']}]\"",
                     "\"{\\\"a\\\":{\\\"b\\\":[1,-2]},\\\"c\\\":\\\"d\\\"}\""});
    }
    const unsigned less = depth - 1;
    switch (pick(12)) {
      case 11:
        return "both[" + text_expression(less) + ", " + text_expression(less) + "]";
      case 8:
        return "cleanpath(" + text_expression(less) + ")";
      case 9:
        return "strtok(" + (pick(2) == 0 ? "NULL" : text_expression(less)) + ", " +
               one_of({"\"/\"", "\"a\"", "\"\"", "\"., {\""}) + ")";
      case 10:
        return "json(" + text_expression(less) + ", " +
               one_of({"\"a\"", "\"c\"", "\"a.b[1]\"", "\"[0]\"", "\"1.a.0\"", "\"\""}) + ")";
      case 0:
        return "strjoin(" + text_expression(less) + ", " + text_expression(less) + ")";
      case 1:
        return "substr(" + text_expression(less) + ", " +
               one_of({"-3", "-1", "0", "1", "2", "40"}) + ", " +
               one_of({"-2", "-1", "0", "1", "2", "5", "100"}) + ")";
      case 2:
        return "substr(" + text_expression(less) + ", " + integer(1) + ")";
      case 3:
        return "lltostr(" + integer(less) + ", " + one_of({"2", "8", "10", "16", "36", "37"}) + ")";
      case 4:
        return one_of({"basename(", "dirname("}) + text_expression(less) + ")";
      case 5:
        return one_of({"toupper(", "tolower("}) + text_expression(less) + ")";
      case 6:
        return "(" + integer(less) + " ? " + text_expression(less) + " : " + text_expression(less) +
               ")";
      default:
        return "(" + text_variable() + " = " + text_expression(less) + ")";
    }
  }

  std::mt19937_64 random_;
};

struct Outcome {
  Fault fault = Fault::none;
  std::uint64_t address = 0;
  std::uint64_t bits = 0;
  std::string text;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "fault " << static_cast<unsigned>(outcome.fault) << " address " << std::hex
             << outcome.address << " bits " << outcome.bits << " text '" << outcome.text << "'";
}

enum class Verdict { agreed, refused, outside };

Verdict run_case(const std::string& body) {
  testing::FakeCatalog catalog;
  testing::FakeKernel kernel;
  testing::FakeState machine(kernel, kStringSize);
  testing::FakeState other(kernel, kStringSize);
  other.execname_address = machine.execname_address;
  other.probefunc_address = machine.probefunc_address;
  ProgramSpace space;
  space.types = &catalog.types();
  space.definitions = std::make_shared<Definitions>();
  space.types->set_string_size(kStringSize);
  CompileInput input;
  input.text = kDeclarations + ("dtmalloc::temp:malloc { " + body + "; }");
  input.strsize = kStringSize;
  const SourceText source(input);
  Evaluator evaluator(catalog.types(), other.state);
  try {
    Lexer lexer(input, source, catalog.types());
    Symbols symbols(space);
    Ast ast = parse(input, source, lexer, space, symbols);
    ClauseContext context;
    context.description = ast.clauses[0].descriptions[0].description;
    context.matches = 1;
    context.probe = catalog.probe(catalog.match(context.description).front());
    Sema sema(input, source, space, symbols, context);
    for (Node* statement : ast.clauses[0].statements) {
      sema.expression(*statement);
      const ValueDesc desc = sema.describe(*statement);
      Result<VerifiedDif, std::string> verified =
          verify(generate(source, catalog.types(), *statement, desc), space.variables);
      EXPECT_TRUE(verified) << verified.error();
      machine.reserve(space);
      other.reserve(space);
      machine.state.scratch_used = 0;
      Outcome got;
      got.bits = run(*verified, machine.state);
      got.fault = machine.state.fault;
      if (got.fault == Fault::none && desc.is_string) {
        std::string_view text;
        if (got.bits == 0) {
          got.fault = Fault::badaddr;
          machine.state.fault_address = 0;
        } else if (!string_at(machine.state, got.bits, &text)) {
          got.fault = machine.state.fault;
        }
        got.text = text;
        got.bits = 0;
      }
      if (got.fault != Fault::none) {
        got.bits = 0;
        if (got.fault == Fault::badaddr) got.address = machine.state.fault_address;
      }
      Outcome want;
      try {
        const EvalValue value = evaluator.evaluate(*statement);
        if (desc.is_string) {
          want.text = evaluator.text_of(value, false);
        } else {
          want.bits = value.bits;
        }
      } catch (const EvalFault& fault) {
        if (fault.fault == Fault::unknown) return Verdict::outside;
        want.fault = fault.fault;
        want.address = fault.fault == Fault::badaddr ? fault.address : 0;
      }
      EXPECT_EQ(got, want) << dump(*statement, &catalog.types());
      if (::testing::Test::HasFailure() || got.fault != Fault::none) return Verdict::agreed;
    }
    machine.state.object = nullptr;  // the last object went with its statement
    for (const VariableDesc& variable : space.variables) {
      if (variable.scope == Scope::thread || variable.array) continue;  // the program has read them
      const bool global = variable.scope == Scope::global;
      const std::uint64_t at = variable.id - kVarUser;
      const EvalValue want = evaluator.variables[(global ? "" : "this->") + variable.name];
      if (variable.value.by_ref && !variable.value.is_string) {
        const VariableSlot& slot =
            (global ? machine.state.global_slots : machine.state.local_slots)[at];
        const std::byte* got = global ? machine.state.global_bytes : machine.state.local_bytes;
        const std::byte* bytes = global ? other.state.global_bytes : other.state.local_bytes;
        EXPECT_EQ(std::memcmp(got + slot.offset, bytes + slot.offset, slot.size), 0)
            << variable.name;
        continue;
      }
      const std::uint64_t bits = global ? machine.state.globals[at] : machine.state.locals[at];
      if (!variable.value.is_string) {
        EXPECT_EQ(bits, want.bits) << variable.name;
        continue;
      }
      EXPECT_EQ(bits != 0, want.text.has_value()) << variable.name;
      std::string_view text;
      EXPECT_TRUE(string_at(machine.state,
                            bits == 0
                                ? 0
                                : (global ? kVariableBase + machine.state.global_slots[at].offset
                                          : kLocalBase + machine.state.local_slots[at].offset),
                            &text));
      EXPECT_EQ(text, want.text.value_or("")) << variable.name;
    }
    return Verdict::agreed;
  } catch (const CompileError&) {
    return Verdict::refused;
  }
}

TEST(DifVersusEvaluator, AgreesOnGeneratedPrograms) {
  // REQ: DLANG-30
  const std::uint64_t seed = environment("DTM_SEED", 20261027);
  const std::uint64_t cases = environment("DTM_CASES", 4000);
  std::uint64_t agreed = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    Generator generator(seed + i);
    const std::string body = generator.program();
    agreed += run_case(body) == Verdict::agreed ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << "DTM_SEED=" << seed + i << " DTM_CASES=1\n" << body;
  }
  EXPECT_GT(agreed * 2, cases) << "most generated programs must compile";
}

}  // namespace
}  // namespace dtmalloc::dtrace
