// SPDX-License-Identifier: BSD-2-Clause
// Code of operators, assignments and calls.
// Counterpart:  dt_cg.c
#include "dtrace/lang/codegen.hpp"

namespace dtmalloc::dtrace {

void Generator::truth(unsigned reg, DifOp condition, const Node& node) {
  Label holds;
  Label end;
  branch(condition, holds);
  emit(dif_registers(DifOp::mov, 0, 0, reg));
  branch(DifOp::ba, end);
  bind(holds);
  set_integer(reg, 1, node);
  bind(end);
}

unsigned Generator::unary(const Node& node) {
  const Node& operand = *node.children[0];
  switch (node.op) {
    case Op::deref: {
      const unsigned reg = expression(operand);
      load(reg, node);
      return reg;
    }
    case Op::addrof:
      return operand.kind == NodeKind::unary ? expression(*operand.children[0]) : address(operand);
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

unsigned Generator::step(const Node& node, bool before) {
  const Node& operand = *node.children[0];
  unsigned place = 0;
  unsigned reg = 0;
  if (is_variable(operand)) {
    reg = load_variable(operand);
  } else {
    place = operand.kind == NodeKind::unary ? expression(*operand.children[0]) : address(operand);
    reg = allocate(node);
    emit(dif_registers(DifOp::mov, place, 0, reg));
    load(reg, operand);
  }
  const unsigned changed = before ? allocate(node) : reg;
  const unsigned one =
      integer(type(operand).kind == TypeKind::pointer ? element_size(operand) : 1, node);
  emit(dif_registers(node.op == Op::inc ? DifOp::add : DifOp::sub, reg, one, changed));
  release(one);
  if (is_variable(operand)) {
    store_variable(operand, changed);
  } else {
    store(changed, place, operand);
    release(place);
  }
  if (before) release(changed);
  return reg;
}

void Generator::arithmetic(Op op, const Node& left, const Node& right, unsigned l, unsigned r) {
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

unsigned Generator::sum(const Node& node) {
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

unsigned Generator::compare(const Node& node) {
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

unsigned Generator::short_circuit(const Node& node, DifOp end, bool settled) {
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

unsigned Generator::exclusive(const Node& node) {
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

unsigned Generator::binary(const Node& node) {
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

unsigned Generator::assign(const Node& node) {
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
    if (is_variable(left)) {
      reg = load_variable(left);
    } else {
      reg = allocate(node);
      emit(dif_registers(DifOp::mov, place, 0, reg));
      load(reg, left);
    }
    const unsigned r = expression(right);
    if (type(left).kind == TypeKind::pointer) scale(r, element_size(left), node);
    arithmetic(op, left, right, reg, r);
    release(r);
  }
  if (is_variable(left)) {
    store_variable(left, reg);
  } else {
    if (kept_by_address(type(left).kind)) {
      copy(reg, place, left, right);
    } else {
      store(reg, place, left);
    }
    release(place);
  }
  return reg;
}

unsigned Generator::conditional(const Node& node) {
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

unsigned Generator::call(const Node& node) {
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

}  // namespace dtmalloc::dtrace
