// SPDX-License-Identifier: BSD-2-Clause
// Names of opcodes, subroutines and faults; objects as text.
// Counterpart:  dt_dis.c
#include <fmt/format.h>

#include <array>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::array<DifOpInfo, 256> op_table() {
  std::array<DifOpInfo, 256> table{};
#define DIF_OP(number, opname, opform, effect)        \
  {                                                   \
    std::string_view text = #opname;                  \
    if (text.ends_with('_')) text.remove_suffix(1);   \
    table[number] = DifOpInfo{text, DifForm::opform}; \
  }
#include "dtrace/dif/opcodes.def"
#undef DIF_OP
  return table;
}
constexpr std::array<DifOpInfo, 256> kOps = op_table();

}  // namespace

std::string_view builtin_name(std::uint32_t id) {
  static constexpr std::array<std::string_view, 0x24> kNames = {
      "curthread", "timestamp", "vtimestamp",    "ipl",         "epid",       "id",
      "arg0",      "arg1",      "arg2",          "arg3",        "arg4",       "arg5",
      "arg6",      "arg7",      "arg8",          "arg9",        "stackdepth", "caller",
      "probeprov", "probemod",  "probefunc",     "probename",   "pid",        "tid",
      "execname",  "zonename",  "walltimestamp", "ustackdepth", "ucaller",    "ppid",
      "uid",       "gid",       "errno",         "execargs",    "jid",        "jailname"};
  if (id == kVarArgs) return "args";
  if (id == kVarRegs) return "regs";
  if (id == kVarUregs) return "uregs";
  if (id == kVarCpu) return "cpu";
  if (id >= kVarCurthread && id - kVarCurthread < kNames.size()) return kNames[id - kVarCurthread];
  return {};
}

namespace {

Scope scope_of(unsigned op) {
  switch (static_cast<DifOp>(op)) {
    case DifOp::ldta:
    case DifOp::ldts:
    case DifOp::stts:
    case DifOp::ldtaa:
    case DifOp::sttaa:
      return Scope::thread;
    case DifOp::ldls:
    case DifOp::stls:
      return Scope::local;
    default:
      return Scope::global;
  }
}

// The remark behind an instruction that names a variable.
std::string variable_note(DifWord word, std::uint32_t id, const VariableList* variables) {
  const VariableDesc* user =
      variables == nullptr ? nullptr : variables->find(scope_of(word.op()), id);
  const std::string_view name = user != nullptr ? user->name : builtin_name(id);
  return name.empty() ? std::string() : fmt::format("\t\t! DT_VAR({}) = \"{}\"", id, name);
}

std::string operands(const DifObject& object, DifWord word, const VariableList* variables) {
  switch (dif_op_info(word.op()).form) {
    case DifForm::rrr:
      if (word.op() == static_cast<unsigned>(DifOp::copys) && (word.r2() & kCopyText) != 0) {
        return fmt::format("%r{}, %r{}, %r{}\t\t! text", word.r1(), word.r2() & ~kCopyText,
                           word.rd());
      }
      return fmt::format("%r{}, %r{}, %r{}", word.r1(), word.r2(), word.rd());
    case DifForm::rr:
      return fmt::format("%r{}, %r{}", word.r1(), word.rd());
    case DifForm::cmp:
      return fmt::format("%r{}, %r{}", word.r1(), word.r2());
    case DifForm::rd:
      return fmt::format("%r{}", word.rd());
    case DifForm::r1:
      return fmt::format("%r{}", word.r1());
    case DifForm::label:
      return fmt::format("{}", word.label());
    case DifForm::load:
    case DifForm::uload:
      return fmt::format("[%r{}], %r{}{}", word.r1(), word.rd(),
                         word.r2() != 0 ? "\t\t! pointer" : "");
    case DifForm::store:
      return fmt::format("%r{}, [%r{}]", word.r1(), word.rd());
    case DifForm::index:
      if (word.op() == static_cast<unsigned>(DifOp::setx)) {
        const std::uint64_t value =
            word.index() < object.ints.size() ? object.ints[word.index()] : 0;
        return fmt::format("DT_INTEGER[{}], %r{}\t\t! {:#x}", word.index(), word.rd(), value);
      }
      return fmt::format(
          "DT_STRING[{}], %r{}\t\t! \"{}\"", word.index(), word.rd(),
          word.index() < object.strings.size() ? object.strings.c_str() + word.index() : "");
    case DifForm::var:
    case DifForm::setvar: {
      const std::string note = variable_note(word, word.index(), variables);
      if (dif_op_info(word.op()).form == DifForm::var) {
        return fmt::format("DT_VAR({}), %r{}{}", word.index(), word.rd(), note);
      }
      return fmt::format("%r{}, DT_VAR({}){}", word.rd(), word.index(), note);
    }
    case DifForm::arr:
      return fmt::format("DT_VAR({}), %r{}, %r{}{}", word.r1(), word.r2(), word.rd(),
                         variable_note(word, word.r1(), variables));
    case DifForm::call:
      return fmt::format("DIF_SUBR({}), %r{}\t\t! {}", word.index(), word.rd(),
                         subroutine_name(word.index()));
    case DifForm::push:
      if (word.op() == static_cast<unsigned>(DifOp::pushtv)) {
        return fmt::format("DT_TYPE({}), %r{}\t\t! DT_TYPE({}) = D type", word.r1(), word.rd(),
                           word.r1());
      }
      return fmt::format("DT_TYPE({}), %r{}, %r{}\t! DT_TYPE({}) = {}", word.r1(), word.r2(),
                         word.rd(), word.r1(), word.r1() == kKeyString ? "string" : "D type");
    case DifForm::none:
    case DifForm::unknown:
      break;
  }
  return {};
}

}  // namespace

const DifOpInfo& dif_op_info(unsigned op) { return kOps[op & 0xff]; }

std::string_view subroutine_name(std::uint32_t subroutine) {
  // By number; empty: FreeBSD has none of this name.
  static constexpr std::string_view kNames[] = {
      "rand",
      "mutex_owned",
      "mutex_owner",
      "mutex_type_adaptive",
      "mutex_type_spin",
      "rw_read_held",
      "rw_write_held",
      "rw_iswriter",
      "copyin",
      "copyinstr",
      "speculation",
      "progenyof",
      "strlen",
      "copyout",
      "copyoutstr",
      "alloca",
      "bcopy",
      "copyinto",
      "",
      "",
      "",
      "",
      "ddi_pathname",
      "strjoin",
      "lltostr",
      "basename",
      "dirname",
      "cleanpath",
      "strchr",
      "strrchr",
      "strstr",
      "strtok",
      "substr",
      "index",
      "rindex",
      "htons",
      "htonl",
      "htonll",
      "ntohs",
      "ntohl",
      "ntohll",
      "inet_ntop",
      "inet_ntoa",
      "inet_ntoa6",
      "toupper",
      "tolower",
      "memref",
      "sx_shared_held",
      "sx_exclusive_held",
      "sx_isexclusive",
      "memstr",
      "",
      "json",
      "strtoll",
  };
  static_assert(std::size(kNames) == kSubrStrtoll + 1);
  return subroutine < std::size(kNames) ? kNames[subroutine] : std::string_view();
}

std::string_view fault_text(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "no fault";
    case Fault::unknown:
      return "unknown fault";
    case Fault::badaddr:
      return "invalid address";
    case Fault::badalign:
      return "invalid alignment";
    case Fault::illop:
      return "illegal operation";
    case Fault::divzero:
      return "divide-by-zero";
    case Fault::noscratch:
      return "out of scratch space";
    case Fault::kpriv:
      return "invalid kernel access";
    case Fault::upriv:
      return "invalid user access";
    case Fault::tupoflow:
      return "tuple stack overflow";
    case Fault::badstack:
      return "bad stack";
    case Fault::library:
      return "library-level fault";
  }
  return "unknown fault";
}

std::string disassemble(const DifObject& object, const VariableList* variables) {
  std::string out = fmt::format("{:<3} {:<8}    {}\n", "OFF", "OPCODE", "INSTRUCTION");
  for (std::size_t pc = 0; pc < object.text.size(); ++pc) {
    const DifWord word{object.text[pc]};
    const DifOpInfo& info = dif_op_info(word.op());
    const std::string tail = operands(object, word, variables);
    out += fmt::format("{:02}: {:08x}    {}", pc, word.word,
                       info.form == DifForm::unknown ? "???" : info.name);
    if (!tail.empty()) {
      out.append(info.name.size() < 4 ? 4 - info.name.size() : 0, ' ');
      out += ' ' + tail;
    }
    out += '\n';
  }
  return out;
}

}  // namespace dtmalloc::dtrace
