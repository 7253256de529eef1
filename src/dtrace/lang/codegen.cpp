// SPDX-License-Identifier: BSD-2-Clause
// Typed expressions to DIF. Registers r1..r7 hold 64-bit values; strings, structs and arrays are
// addresses.
// Counterpart:  dt_cg.c
#include <fmt/format.h>

#include <algorithm>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

class Generator {
 public:
  Generator(const SourceText& source, TypeTable& types) : source_(source), types_(types) {
    object_.strings.assign(1, '\0');
  }

  DifObject take(const Node& node, const ValueDesc& result) {
    const unsigned reg = expression(node);
    emit(dif_registers(DifOp::ret, 0, 0, reg));
    object_.result = result;
    return std::move(object_);
  }

 private:
  using Label = std::vector<std::size_t>;  // branches that wait for their target

  void emit(std::uint32_t word) { object_.text.push_back(word); }
  void branch(DifOp op, Label& label) {
    label.push_back(object_.text.size());
    emit(dif_label(op, 0));
  }
  void bind(Label& label) {
    for (const std::size_t at : label) {
      object_.text[at] |= static_cast<std::uint32_t>(object_.text.size());
    }
  }

  unsigned allocate(const Node& node) {
    for (unsigned reg = 1; reg < kDifRegisters; ++reg) {
      if ((used_ >> reg & 1) == 0) {
        used_ |= 1U << reg;
        return reg;
      }
    }
    source_.fail("D_NOREG", node.place, "Insufficient registers to generate code");
  }
  void release(unsigned reg) { used_ &= ~(1U << reg); }

  void set_integer(unsigned reg, std::uint64_t value, const Node& node) {
    const auto found = std::find(object_.ints.begin(), object_.ints.end(), value);
    const auto index = static_cast<std::size_t>(found - object_.ints.begin());
    if (found == object_.ints.end()) object_.ints.push_back(value);
    if (index > 0xffff) too_big(node, "Integer");
    emit(dif_index(DifOp::setx, static_cast<unsigned>(index), reg));
  }
  unsigned integer(std::uint64_t value, const Node& node) {
    const unsigned reg = allocate(node);
    set_integer(reg, value, node);
    return reg;
  }
  unsigned string(const Node& node) {
    const std::string entry = node.text + '\0';
    std::size_t at = object_.strings.find('\0' + entry);
    if (node.text.empty()) {
      at = 0;
    } else if (at != std::string::npos) {
      ++at;
    } else {
      at = object_.strings.size();
      object_.strings += entry;
    }
    if (object_.strings.size() > 0xffff) too_big(node, "String");
    const unsigned reg = allocate(node);
    emit(dif_index(DifOp::sets, static_cast<unsigned>(at), reg));
    return reg;
  }
  [[noreturn]] void too_big(const Node& node, std::string_view which) const {
    source_.fail("D_SIM_LIMIT", node.place, fmt::format("{} constant table limit exceeded", which));
  }

  const Type& type(TypeId id) const { return types_[types_.resolve(id)]; }
  const Type& type(const Node& node) const { return type(node.type); }
  bool is_string(const Node& node) const { return type(node).kind == TypeKind::string; }
  bool is_address(const Node& node) const {
    const TypeKind kind = type(node).kind;
    return kind == TypeKind::pointer || kind == TypeKind::array || kind == TypeKind::string;
  }
  std::uint64_t element_size(const Node& pointer) const {
    return is_string(pointer) ? 1 : type(type(pointer).target).size;
  }
  static bool kept_by_address(TypeKind kind) {
    return kind == TypeKind::string || kind == TypeKind::struct_ || kind == TypeKind::union_ ||
           kind == TypeKind::array;
  }

  // --- memory
  void load(unsigned reg, TypeId id) {
    const Type& target = type(id);
    if (kept_by_address(target.kind)) return;
    DifOp op = DifOp::ldx;
    if (target.size == 1) op = target.is_signed ? DifOp::ldsb : DifOp::ldub;
    if (target.size == 2) op = target.is_signed ? DifOp::ldsh : DifOp::lduh;
    if (target.size == 4) op = target.is_signed ? DifOp::ldsw : DifOp::lduw;
    const bool pointer = target.kind == TypeKind::pointer;
    emit(dif_registers(op, reg, pointer ? 1 : 0, reg));
  }
  void store(unsigned value, unsigned address, TypeId id) {
    const std::uint64_t size = type(id).size;
    const DifOp op = size == 1   ? DifOp::stb
                     : size == 2 ? DifOp::sth
                     : size == 4 ? DifOp::stw
                                 : DifOp::stx;
    emit(dif_registers(op, value, 0, address));
  }
  void scale(unsigned reg, std::uint64_t size, const Node& node) {
    if (size == 1) return;
    const unsigned factor = integer(size, node);
    emit(dif_registers(DifOp::mul, reg, factor, reg));
    release(factor);
  }

  // The address of an lvalue in memory.
  unsigned address(const Node& node) {
    const Node& base = *node.children[0];
    const unsigned reg = expression(base);
    if (node.kind == NodeKind::index) {
      const unsigned position = expression(*node.children[1]);
      scale(position, element_size(base), node);
      emit(dif_registers(DifOp::add, reg, position, reg));
      release(position);
    } else if (node.kind == NodeKind::member && node.offset != 0) {
      const unsigned offset = integer(node.offset, node);
      emit(dif_registers(DifOp::add, reg, offset, reg));
      release(offset);
    }
    return reg;
  }
  static bool is_variable(const Node& node) {
    return node.kind == NodeKind::identifier || node.kind == NodeKind::local;
  }
  void load_variable(const Node& node, unsigned reg) {
    emit(dif_index(node.scope == Scope::global ? DifOp::ldgs : DifOp::ldls, node.id, reg));
  }
  void store_variable(const Node& node, unsigned reg) {
    emit(dif_index(node.scope == Scope::global ? DifOp::stgs : DifOp::stls, node.id, reg));
  }

  // --- expressions
  unsigned expression(const Node& node) {
    if (node.constant) {
      const unsigned reg = integer(node.value, node);
      // NULL is an inline long of the int 0.
      if (node.kind == NodeKind::identifier && node.null && node.type == types_.long_type) {
        convert(reg, types_.int_type, types_.long_type, node);
      }
      return reg;
    }
    switch (node.kind) {
      case NodeKind::string:
        return string(node);
      case NodeKind::identifier:
      case NodeKind::local: {
        const unsigned reg = allocate(node);
        load_variable(node, reg);
        return reg;
      }
      case NodeKind::unary:
        return unary(node);
      case NodeKind::postfix:
        return step(node, true);
      case NodeKind::binary:
        return binary(node);
      case NodeKind::assign:
        return assign(node);
      case NodeKind::conditional:
        return conditional(node);
      case NodeKind::call:
        return call(node);
      case NodeKind::index:
        if (node.id == kVarArgs && node.children[0]->type == kNoType) return argument(node);
        [[fallthrough]];
      case NodeKind::member: {
        const unsigned reg = address(node);
        load(reg, node.type);
        return reg;
      }
      case NodeKind::cast: {
        const unsigned reg = expression(*node.children[0]);
        convert(reg, node.children[0]->type, node.type, node);
        return reg;
      }
      default:
        break;
    }
    DTM_CHECK(false, "no code for this node");
    return 0;
  }

  unsigned argument(const Node& node) {
    const unsigned reg = integer(node.children[1]->value, node);
    emit(dif_registers(DifOp::ldga, kVarArgs, reg, reg));
    const TypeKind kind = type(node).kind;
    if (kind == TypeKind::integer || kind == TypeKind::enum_) {
      convert(reg, types_.int64_type, node.type, node);
    }
    return reg;
  }

  void shift_pair(unsigned reg, unsigned bits, bool is_signed, const Node& node) {
    const unsigned count = integer(bits, node);
    emit(dif_registers(DifOp::sll, reg, count, reg));
    emit(dif_registers(is_signed ? DifOp::sra : DifOp::srl, reg, count, reg));
    release(count);
  }
  // Cuts a value to a type of at most its size; extends a signed narrow one.
  void convert(unsigned reg, TypeId from, TypeId to, const Node& node) {
    const Type& source = type(from);
    const Type& target = type(to);
    const bool target_scalar = target.kind == TypeKind::integer || target.kind == TypeKind::enum_ ||
                               target.kind == TypeKind::pointer;
    const bool source_scalar = source.kind == TypeKind::integer || source.kind == TypeKind::enum_ ||
                               source.kind == TypeKind::pointer;
    if (!target_scalar || !source_scalar) return;
    if (target.size > source.size) {
      if (!source.is_signed) return;
      shift_pair(reg, static_cast<unsigned>(64 - source.size * 8), true, node);
      if (!target.is_signed && target.size < 8) {
        shift_pair(reg, static_cast<unsigned>(64 - target.size * 8), false, node);
      }
    } else if (target.size < 8) {
      shift_pair(reg, static_cast<unsigned>(64 - target.size * 8), target.is_signed, node);
    }
  }

  // 1 in reg where the condition holds, 0 elsewhere.
  void truth(unsigned reg, DifOp condition, const Node& node) {
    Label holds;
    Label end;
    branch(condition, holds);
    emit(dif_registers(DifOp::mov, 0, 0, reg));
    branch(DifOp::ba, end);
    bind(holds);
    set_integer(reg, 1, node);
    bind(end);
  }

  unsigned unary(const Node& node) {
    const Node& operand = *node.children[0];
    switch (node.op) {
      case Op::deref: {
        const unsigned reg = expression(operand);
        load(reg, node.type);
        return reg;
      }
      case Op::addrof:
        return operand.kind == NodeKind::unary ? expression(*operand.children[0])
                                               : address(operand);
      case Op::inc:
      case Op::dec:
        return step(node, false);
      default:
        break;
    }
    const unsigned reg = expression(operand);
    if (node.op == Op::neg) emit(dif_registers(DifOp::sub, 0, reg, reg));
    if (node.op == Op::bnot) emit(dif_registers(DifOp::not_, reg, 0, reg));
    if (node.op == Op::lnot) {
      emit(dif_registers(DifOp::tst, reg, 0, 0));
      truth(reg, DifOp::be, node);
    }
    return reg;
  }

  // ++ and --: the value before (postfix) or after.
  unsigned step(const Node& node, bool before) {
    const Node& operand = *node.children[0];
    unsigned place = 0;
    unsigned reg = 0;
    if (is_variable(operand)) {
      reg = allocate(node);
      load_variable(operand, reg);
    } else {
      place = operand.kind == NodeKind::unary ? expression(*operand.children[0]) : address(operand);
      reg = allocate(node);
      emit(dif_registers(DifOp::mov, place, 0, reg));
      load(reg, operand.type);
    }
    const unsigned changed = before ? allocate(node) : reg;
    const unsigned one =
        integer(type(operand).kind == TypeKind::pointer ? element_size(operand) : 1, node);
    emit(dif_registers(node.op == Op::inc ? DifOp::add : DifOp::sub, reg, one, changed));
    release(one);
    if (is_variable(operand)) {
      store_variable(operand, changed);
    } else {
      store(changed, place, operand.type);
      release(place);
    }
    if (before) release(changed);
    return reg;
  }

  bool promoted_signed(const Node& left, const Node& right) const {
    const auto rank = [](const Type& t) { return t.size * 8 + (t.is_signed ? 0 : 1); };
    const Type& l = type(left);
    const Type& r = type(right);
    return rank(l) >= rank(r) ? l.is_signed : r.is_signed;
  }

  void arithmetic(Op op, const Node& left, const Node& right, unsigned l, unsigned r) {
    DifOp code = DifOp::add;
    switch (op) {
      case Op::bor:
        code = DifOp::or_;
        break;
      case Op::bxor:
        code = DifOp::xor_;
        break;
      case Op::band:
        code = DifOp::and_;
        break;
      case Op::shl:
        code = DifOp::sll;
        break;
      case Op::shr:
        code = type(left).is_signed ? DifOp::sra : DifOp::srl;
        break;
      case Op::sub:
        code = DifOp::sub;
        break;
      case Op::mul:
        code = DifOp::mul;
        break;
      case Op::div:
        code = promoted_signed(left, right) ? DifOp::sdiv : DifOp::udiv;
        break;
      case Op::mod:
        code = promoted_signed(left, right) ? DifOp::srem : DifOp::urem;
        break;
      default:
        break;
    }
    emit(dif_registers(code, l, r, l));
  }

  unsigned sum(const Node& node) {
    const Node& left = *node.children[0];
    const Node& right = *node.children[1];
    const unsigned l = expression(left);
    if (is_address(right) && !is_address(left)) scale(l, element_size(right), node);
    const unsigned r = expression(right);
    if (is_address(left) && !is_address(right)) scale(r, element_size(left), node);
    emit(dif_registers(node.op == Op::add ? DifOp::add : DifOp::sub, l, r, l));
    release(r);
    if (is_address(left) && is_address(right) && element_size(left) != 1) {
      const unsigned size = integer(element_size(left), node);
      emit(dif_registers(DifOp::udiv, l, size, l));
      release(size);
    }
    return l;
  }

  unsigned compare(const Node& node) {
    const Node& left = *node.children[0];
    const Node& right = *node.children[1];
    const unsigned l = expression(left);
    const unsigned r = expression(right);
    const bool text = is_string(left) || is_string(right);
    emit(dif_registers(text ? DifOp::scmp : DifOp::cmp, l, r, 0));
    release(r);
    const bool is_signed =
        text || (!is_address(left) && !is_address(right) && promoted_signed(left, right));
    DifOp condition = DifOp::be;
    switch (node.op) {
      case Op::ne:
        condition = DifOp::bne;
        break;
      case Op::lt:
        condition = is_signed ? DifOp::bl : DifOp::blu;
        break;
      case Op::le:
        condition = is_signed ? DifOp::ble : DifOp::bleu;
        break;
      case Op::gt:
        condition = is_signed ? DifOp::bg : DifOp::bgu;
        break;
      case Op::ge:
        condition = is_signed ? DifOp::bge : DifOp::bgeu;
        break;
      default:
        break;
    }
    truth(l, condition, node);
    return l;
  }

  // && and ||: `end` is the condition of a tested operand that settles the result.
  unsigned short_circuit(const Node& node, DifOp end, bool settled) {
    Label decided;
    Label done;
    for (const Node* operand : node.children) {
      const unsigned reg = expression(*operand);
      emit(dif_registers(DifOp::tst, reg, 0, 0));
      release(reg);
      branch(end, decided);
    }
    const unsigned reg = allocate(node);
    set_integer(reg, settled ? 0 : 1, node);
    branch(DifOp::ba, done);
    bind(decided);
    set_integer(reg, settled ? 1 : 0, node);
    bind(done);
    return reg;
  }

  unsigned exclusive(const Node& node) {
    unsigned regs[2];
    for (int i = 0; i < 2; ++i) {
      Label zero;
      regs[i] = expression(*node.children[static_cast<std::size_t>(i)]);
      emit(dif_registers(DifOp::tst, regs[i], 0, 0));
      branch(DifOp::be, zero);
      set_integer(regs[i], 1, node);
      bind(zero);
    }
    emit(dif_registers(DifOp::xor_, regs[0], regs[1], regs[0]));
    release(regs[1]);
    return regs[0];
  }

  unsigned binary(const Node& node) {
    const Node& left = *node.children[0];
    const Node& right = *node.children[1];
    switch (node.op) {
      case Op::comma:
        release(expression(left));
        return expression(right);
      case Op::land:
        return short_circuit(node, DifOp::be, false);
      case Op::lor:
        return short_circuit(node, DifOp::bne, true);
      case Op::lxor:
        return exclusive(node);
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge:
        return compare(node);
      case Op::add:
      case Op::sub:
        return sum(node);
      default:
        break;
    }
    const unsigned l = expression(left);
    const unsigned r = expression(right);
    arithmetic(node.op, left, right, l, r);
    release(r);
    return l;
  }

  unsigned assign(const Node& node) {
    const Node& left = *node.children[0];
    const Node& right = *node.children[1];
    const Op op = op_of_assignment(node.op);
    unsigned place = 0;
    unsigned reg = 0;
    if (!is_variable(left)) {
      place = left.kind == NodeKind::unary ? expression(*left.children[0]) : address(left);
    }
    if (op == Op::none) {
      reg = expression(right);
    } else {
      reg = allocate(node);
      if (is_variable(left)) {
        load_variable(left, reg);
      } else {
        emit(dif_registers(DifOp::mov, place, 0, reg));
        load(reg, left.type);
      }
      const unsigned r = expression(right);
      if (type(left).kind == TypeKind::pointer) scale(r, element_size(left), node);
      arithmetic(op, left, right, reg, r);
      release(r);
    }
    if (is_variable(left)) {
      store_variable(left, reg);
    } else {
      store(reg, place, left.type);
      release(place);
    }
    return reg;
  }

  unsigned conditional(const Node& node) {
    Label otherwise;
    Label end;
    const unsigned test = expression(*node.children[0]);
    emit(dif_registers(DifOp::tst, test, 0, 0));
    release(test);
    branch(DifOp::be, otherwise);
    const unsigned result = expression(*node.children[1]);
    branch(DifOp::ba, end);
    release(result);  // dead on the other path
    bind(otherwise);
    const unsigned other = expression(*node.children[2]);
    if (other != result) {
      emit(dif_registers(DifOp::mov, other, 0, result));
      release(other);
      used_ |= 1U << result;
    }
    bind(end);
    return result;
  }

  unsigned call(const Node& node) {
    std::vector<unsigned> regs;
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      regs.push_back(expression(*node.children[i]));
    }
    emit(dif_registers(DifOp::flushts, 0, 0, 0));
    for (const unsigned reg : regs) {
      emit(dif_registers(DifOp::pushtr, 0, 0, reg));
      release(reg);
    }
    const unsigned reg = allocate(node);
    emit(dif_index(DifOp::call, node.id, reg));
    return reg;
  }

  const SourceText& source_;
  TypeTable& types_;
  DifObject object_;
  unsigned used_ = 1;  // r0
};

}  // namespace

DifObject generate(const SourceText& source, TypeTable& types, const Node& node, ValueDesc result) {
  return Generator(source, types).take(node, result);
}

}  // namespace dtmalloc::dtrace
