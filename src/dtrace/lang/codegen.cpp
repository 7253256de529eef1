// SPDX-License-Identifier: BSD-2-Clause
// Typed expressions to DIF. Registers r1..r7 hold 64-bit values; strings, structs and arrays are
// addresses.
// Counterpart:  dt_cg.c
#include "dtrace/lang/codegen.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtmalloc::dtrace {

DifObject Generator::take(const Node& node, const ValueDesc& result) {
  place_ = node.place;
  const unsigned reg = expression(node);
  emit(dif_registers(DifOp::ret, 0, 0, reg));
  object_.result = result;
  return std::move(object_);
}

void Generator::too_long() const {
  source_.fail("D_SIM_LIMIT", place_, "DIF program exceeds maximum program size");
}

void Generator::branch(DifOp op, Label& label) {
  label.push_back(object_.text.size());
  emit(dif_label(op, 0));
}

void Generator::bind(Label& label) {
  for (const std::size_t at : label) {
    object_.text[at] |= static_cast<std::uint32_t>(object_.text.size());
  }
}

void Generator::unresolved(const Node& node) const {
  source_.fail("D_ASRELO", node.place,
               fmt::format("relocation remains against kernel symbol D`{} (offset {:#x})",
                           node.text.starts_with("D`") ? node.text.substr(2) : node.text,
                           object_.text.size() * 4));
}

unsigned Generator::allocate(const Node& node) {
  for (unsigned reg = 1; reg < kDifRegisters; ++reg) {
    if ((used_ >> reg & 1) == 0) {
      used_ |= 1U << reg;
      return reg;
    }
  }
  source_.fail("D_NOREG", node.place, "Insufficient registers to generate code");
}

void Generator::set_integer(unsigned reg, std::uint64_t value, const Node& node) {
  const auto found = std::find(object_.ints.begin(), object_.ints.end(), value);
  const auto index = static_cast<std::size_t>(found - object_.ints.begin());
  if (found == object_.ints.end()) object_.ints.push_back(value);
  if (index > 0xffff) too_big(node, "Integer");
  emit(dif_index(DifOp::setx, static_cast<unsigned>(index), reg));
}

unsigned Generator::integer(std::uint64_t value, const Node& node) {
  const unsigned reg = allocate(node);
  set_integer(reg, value, node);
  return reg;
}

unsigned Generator::string(const Node& node) {
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

bool Generator::is_address(const Node& node) const {
  const TypeKind kind = type(node).kind;
  return kind == TypeKind::pointer || kind == TypeKind::array || kind == TypeKind::string;
}

bool Generator::kept_by_address(TypeKind kind) {
  return kind == TypeKind::string || kind == TypeKind::struct_ || kind == TypeKind::union_ ||
         kind == TypeKind::array;
}

namespace {

DifOp load_op(std::uint64_t size, bool is_signed, bool userland) {
  if (userland) {
    if (size == 1) return is_signed ? DifOp::uldsb : DifOp::uldub;
    if (size == 2) return is_signed ? DifOp::uldsh : DifOp::ulduh;
    if (size == 4) return is_signed ? DifOp::uldsw : DifOp::ulduw;
    return DifOp::uldx;
  }
  if (size == 1) return is_signed ? DifOp::ldsb : DifOp::ldub;
  if (size == 2) return is_signed ? DifOp::ldsh : DifOp::lduh;
  if (size == 4) return is_signed ? DifOp::ldsw : DifOp::lduw;
  return DifOp::ldx;
}

DifOp store_op(std::uint64_t size) {
  return size == 1 ? DifOp::stb : size == 2 ? DifOp::sth : size == 4 ? DifOp::stw : DifOp::stx;
}

std::uint64_t low_bits(unsigned width) { return ~std::uint64_t{0} >> (64 - width); }

}  // namespace

void Generator::load(unsigned reg, const Node& node) {
  const Type& target = type(node);
  if (is_kept_by_reference(node)) return;
  if (target.bits == 0) {
    const bool pointer = target.kind == TypeKind::pointer && !node.userland;
    emit(dif_registers(load_op(target.size, target.is_signed, node.userland), reg, pointer ? 1 : 0,
                       reg));
    return;
  }
  emit(dif_registers(load_op(type(target.target).size, false, node.userland), reg, 0, reg));
  const unsigned above = 64 - node.bit - target.bits;
  const unsigned count = allocate(node);
  if (above != 0) {
    set_integer(count, above, node);
    emit(dif_registers(DifOp::sll, reg, count, reg));
  }
  if (target.bits < 64) {
    set_integer(count, 64U - target.bits, node);
    emit(dif_registers(target.is_signed ? DifOp::sra : DifOp::srl, reg, count, reg));
  }
  release(count);
}

void Generator::store(unsigned value, unsigned address, const Node& node) {
  const Type& target = type(node);
  if (target.bits != 0) return store_bit_field(value, address, node);
  emit(dif_registers(store_op(target.size), value, 0, address));
}

// The bits around the field stay; the value keeps its register.
void Generator::store_bit_field(unsigned value, unsigned address, const Node& node) {
  const Type& target = type(node);
  const std::uint64_t unit = type(target.target).size;
  const std::uint64_t mask = low_bits(target.bits);
  const unsigned around = allocate(node);
  emit(dif_registers(load_op(unit, false, false), address, 0, around));
  unsigned constant = integer(~(mask << node.bit), node);
  emit(dif_registers(DifOp::and_, around, constant, around));
  set_integer(constant, mask, node);
  const unsigned field = allocate(node);
  emit(dif_registers(DifOp::and_, value, constant, field));
  if (node.bit != 0) {
    set_integer(constant, node.bit, node);
    emit(dif_registers(DifOp::sll, field, constant, field));
  }
  release(constant);
  emit(dif_registers(DifOp::or_, around, field, around));
  release(field);
  emit(dif_registers(store_op(unit), around, 0, address));
  release(around);
}

// Structs, unions, and strings that are members.
void Generator::copy(unsigned from, unsigned address, const Node& target, const Node& source) {
  const bool text = is_string(target);
  std::uint64_t size = type(target).size;
  if (source.kind == NodeKind::string) {
    size = std::min<std::uint64_t>(size, source.text.size() + 1);
  }
  const unsigned bytes = integer(size, target);
  emit(dif_registers(DifOp::copys, from, bytes | (text ? kCopyText : 0), address));
  release(bytes);
}

void Generator::scale(unsigned reg, std::uint64_t size, const Node& node) {
  if (size == 1) return;
  const unsigned factor = integer(size, node);
  emit(dif_registers(DifOp::mul, reg, factor, reg));
  release(factor);
}

unsigned Generator::address(const Node& node) {
  if (node.external) unresolved(node);
  if (node.symbol) return integer(node.value, node);
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

unsigned Generator::expression(const Node& node) {
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
      if (node.binding != nullptr) return bound(node);
      if (node.inlined != nullptr) return inlined(node);
      [[fallthrough]];
    case NodeKind::local:
    case NodeKind::thread:
      if (node.external) unresolved(node);
      if (node.symbol) {
        const unsigned reg = integer(node.value, node);
        load(reg, node);
        return reg;
      }
      return load_variable(node);
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
    case NodeKind::xlate:
      return translate(node);
    case NodeKind::index:
      if (node.inlined != nullptr) return inlined(node);
      if (node.element) return load_variable(node);
      if (node.id <= kVarUregs && node.children[0]->type == kNoType) return argument(node);
      [[fallthrough]];
    case NodeKind::member: {
      if (node.translation != nullptr) {
        return translated(*node.children[0], *node.translation, node.type);
      }
      const unsigned reg = address(node);
      load(reg, node);
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

unsigned Generator::argument(const Node& node) {
  const Node& position = *node.children[1];
  const unsigned reg = position.constant ? integer(position.value, node) : expression(position);
  emit(dif_registers(DifOp::ldga, node.id, reg, reg));
  const TypeId declared = node.native != kNoType ? node.native : node.type;
  const TypeKind kind = type(declared).kind;
  if (kind == TypeKind::integer || kind == TypeKind::enum_) {
    convert(reg, types_.int64_type, declared, node);
  }
  return reg;
}

void Generator::shift_pair(unsigned reg, unsigned bits, bool is_signed, const Node& node) {
  const unsigned count = integer(bits, node);
  emit(dif_registers(DifOp::sll, reg, count, reg));
  emit(dif_registers(is_signed ? DifOp::sra : DifOp::srl, reg, count, reg));
  release(count);
}

void Generator::convert(unsigned reg, TypeId from, TypeId to, const Node& node) {
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

DifObject generate(const SourceText& source, TypeTable& types, const Node& node, ValueDesc result) {
  return Generator(source, types).take(node, result);
}

}  // namespace dtmalloc::dtrace
