// SPDX-License-Identifier: BSD-2-Clause
// Typed expressions to DIF. Registers r1..r7 hold 64-bit values; strings, structs and arrays are
// addresses.
// Counterpart:  dt_cg.c
#include "dtrace/lang/codegen.hpp"

#include <algorithm>

namespace dtmalloc::dtrace {

DifObject Generator::take(const Node& node, const ValueDesc& result) {
  const unsigned reg = expression(node);
  emit(dif_registers(DifOp::ret, 0, 0, reg));
  object_.result = result;
  return std::move(object_);
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

void Generator::load(unsigned reg, TypeId id) {
  const Type& target = type(id);
  if (kept_by_address(target.kind)) return;
  DifOp op = DifOp::ldx;
  if (target.size == 1) op = target.is_signed ? DifOp::ldsb : DifOp::ldub;
  if (target.size == 2) op = target.is_signed ? DifOp::ldsh : DifOp::lduh;
  if (target.size == 4) op = target.is_signed ? DifOp::ldsw : DifOp::lduw;
  const bool pointer = target.kind == TypeKind::pointer;
  emit(dif_registers(op, reg, pointer ? 1 : 0, reg));
}

void Generator::store(unsigned value, unsigned address, TypeId id) {
  const std::uint64_t size = type(id).size;
  const DifOp op = size == 1   ? DifOp::stb
                   : size == 2 ? DifOp::sth
                   : size == 4 ? DifOp::stw
                               : DifOp::stx;
  emit(dif_registers(op, value, 0, address));
}

void Generator::scale(unsigned reg, std::uint64_t size, const Node& node) {
  if (size == 1) return;
  const unsigned factor = integer(size, node);
  emit(dif_registers(DifOp::mul, reg, factor, reg));
  release(factor);
}

unsigned Generator::address(const Node& node) {
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
    case NodeKind::local: {
      if (node.symbol) {
        const unsigned reg = integer(node.value, node);
        load(reg, node.type);
        return reg;
      }
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
      if (node.id <= kVarUregs && node.children[0]->type == kNoType) return argument(node);
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

unsigned Generator::argument(const Node& node) {
  const Node& position = *node.children[1];
  const unsigned reg = position.constant ? integer(position.value, node) : expression(position);
  emit(dif_registers(DifOp::ldga, node.id, reg, reg));
  const TypeKind kind = type(node).kind;
  if (kind == TypeKind::integer || kind == TypeKind::enum_) {
    convert(reg, types_.int64_type, node.type, node);
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
