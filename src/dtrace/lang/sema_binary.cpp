// SPDX-License-Identifier: BSD-2-Clause
// Binary operators, assignment, constant folding.
// Counterpart:  dt_parser.c (dt_cook_op2, dt_node_op2)
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

// A constant expression of two constants. Shifts to the right are logical.
void Sema::fold(Node& node) {
  const Node& left = *node.children[0];
  const Node& right = *node.children[1];
  if (!left.constant || !right.constant) return;
  const std::uint64_t l = left.value;
  const std::uint64_t r = right.value;
  const auto sl = static_cast<std::int64_t>(l);
  const auto sr = static_cast<std::int64_t>(r);
  const bool arithmetic = is_integer(left) && is_integer(right);
  const bool is_signed =
      arithmetic && types_[types_.resolve(promote(left.type, right.type))].is_signed;
  const auto truth = [](bool value) { return static_cast<std::uint64_t>(value); };
  std::uint64_t value = 0;
  switch (node.op) {
    case Op::comma:
      value = r;
      break;
    case Op::lor:
      value = truth(l != 0 || r != 0);
      break;
    case Op::lxor:
      value = truth((l != 0) != (r != 0));
      break;
    case Op::land:
      value = truth(l != 0 && r != 0);
      break;
    case Op::bor:
      value = l | r;
      break;
    case Op::bxor:
      value = l ^ r;
      break;
    case Op::band:
      value = l & r;
      break;
    case Op::eq:
      value = truth(l == r);
      break;
    case Op::ne:
      value = truth(l != r);
      break;
    case Op::lt:
      value = truth(is_signed ? sl < sr : l < r);
      break;
    case Op::le:
      value = truth(is_signed ? sl <= sr : l <= r);
      break;
    case Op::gt:
      value = truth(is_signed ? sl > sr : l > r);
      break;
    case Op::ge:
      value = truth(is_signed ? sl >= sr : l >= r);
      break;
    case Op::shl:
      value = l << (r & 63);
      break;
    case Op::shr:
      value = l >> (r & 63);
      break;
    case Op::add:
    case Op::sub:
      if (!arithmetic) return;
      value = node.op == Op::add ? l + r : l - r;
      break;
    case Op::mul:
      value = l * r;
      break;
    case Op::div:
      value = !is_signed ? l / r : sr == -1 ? 0 - l : static_cast<std::uint64_t>(sl / sr);
      break;
    case Op::mod:
      value = !is_signed ? l % r : sr == -1 ? 0 : static_cast<std::uint64_t>(sl % sr);
      break;
    default:
      return;
  }
  set_constant(node, node.type, value);
}

// enum == NAME: the enum's own enumerator, unless something else has the name too.
bool Sema::enumerator_operand(Node& node) {
  const Node& left = *node.children[0];
  Node& right = *node.children[1];
  const bool compares = node.op >= Op::eq && node.op <= Op::ge;
  if (!compares || right.kind != NodeKind::identifier || left.type == kNoType ||
      type_of(left).kind != TypeKind::enum_) {
    return false;
  }
  const Enumerator* found = types_.enumerator(left.type, right.text);
  if (found == nullptr) return false;
  if (const GlobalName known = global_name(right.text, space_, symbols_, input_.version);
      !known.kind.empty()) {
    fail("D_IDENT_AMBIG", node,
         fmt::format("ambiguous use of operator {}: {} is both a {} enum tag and a global {}",
                     op_text(node.op), right.text, type_name(left), known.kind));
  }
  right.lvalue = right.writable = right.writes_target = false;
  set_constant(right, left.type, static_cast<std::uint64_t>(std::int64_t{found->value}));
  return true;
}

void Sema::binary(Node& node) {
  Node& left = *node.children[0];
  Node& right = *node.children[1];
  const std::string_view op = op_text(node.op);
  if (node.op != Op::comma && (is_action(left) || is_action(right))) {
    fail("D_OP_ACT", node, fmt::format("operator {} operands cannot be actions", op));
  }
  expression(left);
  if (!enumerator_operand(node)) expression(right);
  if (is_dynamic(left) || is_dynamic(right)) {
    fail("D_OP_DYN", node, fmt::format("operator {} operands cannot be of dynamic type", op));
  }
  const auto integral = [&] {
    if (!is_integer(left) || !is_integer(right)) {
      fail("D_OP_INT", node, fmt::format("operator {} requires operands of integral type", op));
    }
  };
  const auto nonzero = [&] {
    if (right.constant && right.value == 0) {
      fail("D_DIV_ZERO", node, "expression contains division by zero");
    }
  };
  switch (node.op) {
    case Op::comma:
      node.type = right.type;
      node.userland = right.userland;
      break;
    case Op::bor:
    case Op::bxor:
    case Op::band:
      integral();
      node.type = promote(left.type, right.type);
      break;
    case Op::shl:
    case Op::shr:
      integral();
      node.type = left.type;
      break;
    case Op::mod:
      integral();
      nonzero();
      node.type = promote(left.type, right.type);
      break;
    case Op::mul:
    case Op::div:
      if (!is_arithmetic(left) || !is_arithmetic(right)) {
        fail("D_OP_ARITH", node,
             fmt::format("operator {} requires operands of arithmetic type", op));
      }
      if (node.op == Op::div) nonzero();
      node.type = promote(left.type, right.type);
      break;
    case Op::lor:
    case Op::lxor:
    case Op::land:
      if (!is_scalar(left) || !is_scalar(right)) {
        fail("D_OP_SCALAR", node, fmt::format("operator {} requires operands of scalar type", op));
      }
      node.type = types_.int_type;
      break;
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: {
      const bool text =
          (is_string(left) && is_string_like(right)) || (is_string(right) && is_string_like(left));
      const bool numbers = is_arithmetic(left) && is_arithmetic(right);
      if (!text && !numbers && !pointers_agree(left, right)) incompatible(node);
      node.type = types_.int_type;
      if (!numbers) return;  // addresses and texts are compared when the clause runs
      break;
    }
    case Op::add:
    case Op::sub: {
      const bool left_address = is_pointer(left) || is_string(left);
      const bool right_address = is_pointer(right) || is_string(right);
      if (is_arithmetic(left) && is_arithmetic(right)) {
        node.type = promote(left.type, right.type);
        break;
      }
      if (left_address && right_address) {
        if (node.op == Op::add || !pointers_agree(left, right) || is_void_pointer(left) ||
            is_void_pointer(right)) {
          incompatible(node);
        }
        node.type = types_.find("ptrdiff_t");
        return;
      }
      const bool fits = (left_address && is_integer(right)) ||
                        (node.op == Op::add && right_address && is_integer(left));
      if (!fits) incompatible(node);
      Node& pointer = left_address ? left : right;
      const Type& target = types_[types_.resolve(pointee(pointer))];
      if (is_void_pointer(pointer) || target.kind == TypeKind::function) incompatible(node);
      if (target.size == 0) {
        fail("D_OP_VFPTR", node,
             fmt::format("operator {} requires left-hand scalar operand of known size", op));
      }
      node.type = type_of(pointer).kind == TypeKind::array ? types_.pointer_to(pointee(pointer))
                                                           : pointer.type;
      node.userland = pointer.userland;
      node.writes_target = pointer.writes_target;
      return;
    }
    default:
      break;
  }
  fold(node);
}

void Sema::assign(Node& node) {
  Node& left = *node.children[0];
  Node& right = *node.children[1];
  const std::string_view op = op_text(node.op);
  if (is_action(left) || is_action(right)) {
    fail("D_OP_ACT", node, fmt::format("operator {} operands cannot be actions", op));
  }
  if (aggregates(node)) {
    aggregating_function(node);
    return;  // the uses check it
  }
  if (aggregation_of(left) != nullptr) {
    fail("D_OP_DYN", node, fmt::format("operator {} operands cannot be of dynamic type", op));
  }
  expression(right);
  if (is_dynamic(right)) {
    fail("D_OP_DYN", node, fmt::format("operator {} operands cannot be of dynamic type", op));
  }
  const bool plain = node.op == Op::assign;
  target(left, plain ? right.type : types_.int64_type, plain && right.userland);
  switch (node.op) {
    case Op::assign: {
      const TypeKind kind = type_of(left).kind;
      if (kind == TypeKind::array || kind == TypeKind::function) {
        fail("D_OP_ARRFUN", node,
             fmt::format("operator = may not be applied to operand of type \"{}\"",
                         type_name(left)));
      }
      if (!argument_fits(left, right)) incompatible(node);
      break;
    }
    case Op::add_assign:
    case Op::sub_assign:
      if (is_pointer(left) && is_integer(right)) {
        if (is_void_pointer(left)) incompatible(node);
        break;
      }
      if (!is_arithmetic(left) || !is_arithmetic(right)) incompatible(node);
      break;
    case Op::mul_assign:
    case Op::div_assign:
      if (!is_arithmetic(left) || !is_arithmetic(right)) {
        fail("D_OP_ARITH", node,
             fmt::format("operator {} requires operands of arithmetic type", op));
      }
      break;
    default:
      if (!is_integer(left) || !is_integer(right)) {
        fail("D_OP_INT", node, fmt::format("operator {} requires operands of integral type", op));
      }
      break;
  }
  const bool divides = node.op == Op::div_assign || node.op == Op::mod_assign;
  if (divides && right.constant && right.value == 0) {
    fail("D_DIV_ZERO", node, "expression contains division by zero");
  }
  if (!left.lvalue) {
    fail("D_OP_LVAL", node,
         fmt::format("operator {} requires modifiable lvalue as an operand", op));
  }
  if (!left.writable) {
    fail("D_OP_WRITE", node,
         fmt::format("operator {} can only be applied to a writable variable", op));
  }
  if (node.op == Op::assign && right.constant && is_integer(left)) {
    right.value = cut(right.value, right.type, left.type);
  }
  node.type = left.type;
  node.userland = left.userland;
  node.writes_target = right.writes_target;
}

}  // namespace dtmalloc::dtrace
