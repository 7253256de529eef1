// SPDX-License-Identifier: BSD-2-Clause
// Proves of an object what the interpreter assumes, and tells variable accesses apart.
// Counterpart:  dtrace_difo_validate
// Invariants:   branches go forward and stay inside; ret is last and only there; r0 is never
//               written; every index and variable id exists.
#include <fmt/format.h>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

class Verifier {
 public:
  Verifier(const DifObject& object, const VariableList& variables)
      : object_(object), variables_(variables) {}

  std::string run() {
    const std::size_t length = object_.text.size();
    if (length == 0) return "the object is empty";
    if (length > 0xffffff) return "the object is too long";
    if (object_.strings.empty() || object_.strings.front() != '\0' ||
        object_.strings.back() != '\0') {
      return "the string table does not start and end with a NUL";
    }
    if (std::string text = result(); !text.empty()) return text;
    code_.reserve(length);
    for (std::size_t pc = 0; pc < length; ++pc) {
      code_.push_back(object_.text[pc]);
      if (std::string text = instruction(pc); !text.empty()) {
        return fmt::format("instruction {}: {}", pc, text);
      }
    }
    return {};
  }

  std::vector<std::uint32_t> take_code() { return std::move(code_); }

 private:
  std::string result() const {
    const ValueDesc& desc = object_.result;
    if (desc.by_ref) return desc.size == 0 ? "a result by reference has no size" : "";
    if (desc.is_string) return "a string result is not by reference";
    switch (desc.size) {
      case 0:
      case 1:
      case 2:
      case 4:
      case 8:
        return {};
      default:
        return fmt::format("result size {} fits no register", desc.size);
    }
  }

  static std::string source(unsigned reg) {
    return reg < kDifRegisters ? "" : fmt::format("register {} does not exist", reg);
  }
  static std::string destination(unsigned reg) {
    return reg == 0 ? "register 0 is written" : source(reg);
  }

  void rewrite(unsigned op) { code_.back() = (code_.back() & 0xffffff) | op << 24; }

  std::string variable_access(DifWord word) {
    const auto op = static_cast<DifOp>(word.op());
    const bool stores = op == DifOp::stgs || op == DifOp::stls;
    const Scope scope = op == DifOp::ldgs || op == DifOp::stgs ? Scope::global : Scope::local;
    const unsigned id = word.index();
    if (std::string text = stores ? source(word.rd()) : destination(word.rd()); !text.empty()) {
      return text;
    }
    if (id < kVarUser) {
      const bool known = (id >= kVarCurthread && id <= kVarJailname) || id == kVarCpu;
      if (scope == Scope::local || !known) return fmt::format("variable {:#x} does not exist", id);
      if (stores) return fmt::format("variable {:#x} is read-only", id);
      rewrite(kOpLoadBuiltin);
      return {};
    }
    const VariableDesc* found = variables_.find(scope, id);
    if (found == nullptr) return fmt::format("variable {:#x} does not exist", id);
    if (found->value.is_string) {
      rewrite(scope == Scope::global ? stores ? kOpStoreGlobalString : kOpLoadGlobalString
              : stores               ? kOpStoreLocalString
                                     : kOpLoadLocalString);
    } else if (found->value.by_ref) {
      rewrite(scope == Scope::global ? stores ? kOpStoreGlobalBytes : kOpLoadGlobalBytes
              : stores               ? kOpStoreLocalBytes
                                     : kOpLoadLocalBytes);
    }
    return {};
  }

  std::string instruction(std::size_t pc) {
    const DifWord word{object_.text[pc]};
    const bool last = pc + 1 == object_.text.size();
    const auto first = [](std::string a, std::string b) { return a.empty() ? b : a; };
    if (last && word.op() != static_cast<unsigned>(DifOp::ret)) return "the last is not ret";
    switch (dif_op_info(word.op()).form) {
      case DifForm::rrr:
        if (static_cast<DifOp>(word.op()) == DifOp::copys) {
          return first(first(source(word.r1()), source(word.r2() & ~kCopyText)), source(word.rd()));
        }
        return first(first(source(word.r1()), source(word.r2())), destination(word.rd()));
      case DifForm::rr:
        return first(source(word.r1()), destination(word.rd()));
      case DifForm::load:
        if (word.r2() > 1 || (word.r2() == 1 && static_cast<DifOp>(word.op()) != DifOp::ldx)) {
          return "a reserved field is set";
        }
        return first(source(word.r1()), destination(word.rd()));
      case DifForm::store:
        return first(source(word.r1()), source(word.rd()));
      case DifForm::cmp:
        return first(source(word.r1()), source(word.r2()));
      case DifForm::r1:
        return source(word.r1());
      case DifForm::rd:
        return last ? source(word.rd()) : "ret before the end";
      case DifForm::label:
        if (word.label() <= pc) return "a branch goes backward";
        return word.label() < object_.text.size() ? "" : "a branch leaves the object";
      case DifForm::index: {
        const bool integer = static_cast<DifOp>(word.op()) == DifOp::setx;
        const std::size_t size = integer ? object_.ints.size() : object_.strings.size();
        if (word.index() >= size) return "a table index is out of range";
        return destination(word.rd());
      }
      case DifForm::var:
      case DifForm::setvar:
        switch (static_cast<DifOp>(word.op())) {
          case DifOp::ldgs:
          case DifOp::stgs:
          case DifOp::ldls:
          case DifOp::stls:
            return variable_access(word);
          default:
            return fmt::format("opcode {} is not modelled", dif_op_info(word.op()).name);
        }
      case DifForm::arr:
        if (static_cast<DifOp>(word.op()) != DifOp::ldga || word.r1() > kVarUregs) {
          return "this array is not modelled";
        }
        return first(source(word.r2()), destination(word.rd()));
      case DifForm::call:
        if (subroutine_name(word.index()).empty()) {
          return fmt::format("subroutine {} is not modelled", word.index());
        }
        return destination(word.rd());
      case DifForm::push:
        return first(source(word.r2()), source(word.rd()));
      case DifForm::none:
        return {};
      case DifForm::unknown:
        break;
    }
    return fmt::format("opcode {} does not exist", word.op());
  }

  const DifObject& object_;
  const VariableList& variables_;
  std::vector<std::uint32_t> code_;
};

}  // namespace

void VariableList::push_back(VariableDesc variable) {
  auto& positions = positions_[static_cast<std::size_t>(variable.scope)];
  DTM_CHECK(variable.id == kVarUser + positions.size(), "a gap between the ids of variables");
  positions.push_back(static_cast<std::uint32_t>(list_.size()));
  list_.push_back(std::move(variable));
}

VariableLayout lay_out_variables(const VariableList& variables, Scope scope,
                                 std::uint32_t strsize) {
  VariableLayout layout;
  for (const VariableDesc& variable : variables) {
    if (variable.scope != scope) continue;
    const ValueDesc& value = variable.value;
    VariableSlot slot;
    if (value.is_string) {
      slot.size = strsize;
    } else if (value.by_ref && value.size <= kStatvarMax) {
      slot.size = value.size;
    }
    if (variable.array) slot.size = 0;
    slot.offset = layout.size;
    layout.size += (std::uint64_t{slot.size} + 7) & ~std::uint64_t{7};
    layout.slots.push_back(slot);
  }
  return layout;
}

void VariableList::resize(std::size_t size) {
  for (; list_.size() > size; list_.pop_back()) {
    positions_[static_cast<std::size_t>(list_.back().scope)].pop_back();
  }
}

bool VerifiedDif::calls(std::uint32_t subroutine) const {
  for (const std::uint32_t text : object_.text) {
    const DifWord word{text};
    if (word.op() == static_cast<unsigned>(DifOp::call) && word.index() == subroutine) return true;
  }
  return false;
}

Result<VerifiedDif, std::string> verify(DifObject object, const VariableList& variables) {
  Verifier verifier(object, variables);
  if (std::string text = verifier.run(); !text.empty()) return text;
  return VerifiedDif(std::move(object), verifier.take_code());
}

}  // namespace dtmalloc::dtrace
