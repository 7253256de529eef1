// SPDX-License-Identifier: BSD-2-Clause
// Proves of an object what the interpreter assumes, and tells variable accesses apart.
// Counterpart:  dtrace_difo_validate
// Invariants:   branches go forward and stay inside; ret is last and only there; r0 is never
//               written; every index and variable id exists.
#include <fmt/format.h>

#include <algorithm>

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
  std::vector<DynamicRef> take_dynamic() { return std::move(dynamic_); }
  std::size_t chunk_size() const { return chunk_size_; }

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
    if (found->array) return fmt::format("variable {:#x} is an array", id);
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

  // A variable of a thread or an element of an array.
  std::string dynamic_access(DifWord word) {
    const auto op = static_cast<DifOp>(word.op());
    const bool stores = op == DifOp::stts || op == DifOp::stgaa || op == DifOp::sttaa;
    const bool array = op != DifOp::ldts && op != DifOp::stts;
    const bool thread = op != DifOp::ldgaa && op != DifOp::stgaa;
    const unsigned id = word.index();
    if (std::string text = stores ? source(word.rd()) : destination(word.rd()); !text.empty()) {
      return text;
    }
    const VariableDesc* found = variables_.find(thread ? Scope::thread : Scope::global, id);
    if (found == nullptr) return fmt::format("variable {:#x} does not exist", id);
    if (found->array != array) {
      return fmt::format("variable {:#x} is {} array", id, array ? "no" : "an");
    }
    const ValueDesc& value = found->value;
    if (value.by_ref && value.size == 0) return fmt::format("variable {:#x} has no size", id);
    if (dynamic_.size() > 0xffff) return "too many dynamic accesses";
    const auto index = static_cast<std::uint32_t>(dynamic_.size());
    dynamic_.push_back({id, thread, array, value.by_ref, value.is_string, value.size});
    code_.back() = (stores ? kOpStoreDynamic : kOpLoadDynamic) << 24 | index << 8 | word.rd();
    if (stores) count_chunk(array, thread, value.by_ref ? value.size : 8);
    return {};
  }

  // dtrace_difo_chunksize(): sizes of dtrace_dynvar_t with one key, and of further keys. A tuple is
  // what the text pushes, one instruction after the other.
  void count_chunk(bool array, bool thread, std::uint64_t value) {
    constexpr std::size_t kHeader = 48;
    constexpr std::size_t kKey = 16;
    std::size_t keys = thread ? 2 : 1;  // the variable, the thread
    std::size_t size = kHeader;
    if (array) {
      keys += pushed_.size();
      for (const std::uint64_t key : pushed_) size += key;
    }
    size += kKey * (keys - 1) + ((std::max<std::uint64_t>(value, 8) + 7) & ~std::uint64_t{7});
    chunk_size_ = std::max(chunk_size_, size);
  }

  // The bytes of a pushed key, by the constant in its size register.
  void count_push(std::size_t pc, DifWord word) {
    if (pushed_.size() == kDifTupleRegisters) return;  // a fault when it runs
    std::uint64_t size = 0;
    if (static_cast<DifOp>(word.op()) == DifOp::pushtr && word.r2() < kDifRegisters) {
      const DifWord before{pc > 0 ? object_.text[pc - 1] : 0};
      if (word.r2() != 0 && static_cast<DifOp>(before.op()) == DifOp::setx &&
          before.rd() == word.r2()) {
        size = std::min(object_.ints[before.index()], kMostKeyBytes);
      } else if (word.r1() == kKeyString) {
        size = kDefaultString;
      }
    }
    pushed_.push_back((size + 7) & ~std::uint64_t{7});
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
      case DifForm::uload:
        if (word.r2() != 0) return "a reserved field is set";
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
          case DifOp::ldts:
          case DifOp::stts:
          case DifOp::ldgaa:
          case DifOp::stgaa:
          case DifOp::ldtaa:
          case DifOp::sttaa:
            return dynamic_access(word);
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
        if (word.r1() > kKeyString) return "a kind of key that does not exist";
        count_push(pc, word);
        return first(source(word.r2()), source(word.rd()));
      case DifForm::none:
        if (static_cast<DifOp>(word.op()) == DifOp::flushts) pushed_.clear();
        if (static_cast<DifOp>(word.op()) == DifOp::popts && !pushed_.empty()) pushed_.pop_back();
        return {};
      case DifForm::unknown:
        break;
    }
    return fmt::format("opcode {} does not exist", word.op());
  }

  static constexpr std::uint64_t kMostKeyBytes = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kDefaultString = 256;

  const DifObject& object_;
  const VariableList& variables_;
  std::vector<std::uint32_t> code_;
  std::vector<DynamicRef> dynamic_;
  std::vector<std::uint64_t> pushed_;  // bytes of the keys on the tuple stack
  std::size_t chunk_size_ = 0;
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
  VerifiedDif verified(std::move(object));
  verified.code_ = verifier.take_code();
  verified.dynamic_ = verifier.take_dynamic();
  verified.chunk_size_ = verifier.chunk_size();
  return verified;
}

}  // namespace dtmalloc::dtrace
