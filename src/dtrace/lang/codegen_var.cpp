// SPDX-License-Identifier: BSD-2-Clause
// Code of variables: loads, stores, and the tuples of arrays.
// Counterpart:  dt_cg.c (dt_cg_arglist, dt_cg_assoc_op)
#include <algorithm>

#include "dtrace/lang/codegen.hpp"

namespace dtmalloc::dtrace {
namespace {

// Whether its code pushes: what lies on the tuple stack before would be lost.
bool uses_tuple(const Node& node) {
  return node.kind == NodeKind::call || node.element ||
         std::any_of(node.children.begin(), node.children.end(),
                     [](const Node* child) { return uses_tuple(*child); });
}

}  // namespace

// Keys are computed from left to right, then pushed. When the registers do not suffice for all of
// them at once, those behind the last one that pushes itself are pushed as they are computed.
void Generator::push_keys(const Node& node) {
  const std::size_t count = node.children.size() - 1;
  std::size_t ahead = count;
  std::size_t free = 0;
  for (unsigned reg = 1; reg < kDifRegisters; ++reg) free += (used_ >> reg & 1) == 0 ? 1 : 0;
  while (count + 1 > free && ahead > 0 && !uses_tuple(*node.children[ahead])) --ahead;
  std::vector<unsigned> regs;
  for (std::size_t i = 0; i < ahead; ++i) regs.push_back(expression(*node.children[i + 1]));
  emit(dif_registers(DifOp::flushts, 0, 0, 0));
  for (std::size_t i = 0; i < count; ++i) {
    const Node& key = *node.children[i + 1];
    const unsigned reg = i < ahead ? regs[i] : expression(key);
    if (key.key_size == 0) {
      emit(dif_registers(DifOp::pushtv, 0, 0, reg));
    } else {
      const unsigned size = integer(key.key_size, node);
      emit(dif_registers(DifOp::pushtr, is_string(key) ? kKeyString : kKeyBytes, size, reg));
      release(size);
    }
    release(reg);
  }
}

unsigned Generator::load_variable(const Node& node) {
  if (node.element) push_keys(node);
  const unsigned reg = allocate(node);
  DifOp op = node.scope == Scope::global  ? DifOp::ldgs
             : node.scope == Scope::local ? DifOp::ldls
                                          : DifOp::ldts;
  if (node.element) op = node.scope == Scope::thread ? DifOp::ldtaa : DifOp::ldgaa;
  emit(dif_index(op, node.id, reg));
  if (node.element && is_kept_by_reference(node)) fault_in(node, reg);
  return reg;
}

// An element of which there is only the address: when it is not there yet, it becomes zero bytes of
// its type. The keys are still on the tuple stack.
void Generator::fault_in(const Node& node, unsigned reg) {
  const bool thread = node.scope == Scope::thread;
  Label present;
  emit(dif_registers(DifOp::tst, reg, 0, 0));
  branch(DifOp::bne, present);
  set_integer(reg, type(node).size, node);
  emit(dif_registers(DifOp::allocs, reg, 0, reg));
  emit(dif_index(thread ? DifOp::sttaa : DifOp::stgaa, node.id, reg));
  emit(dif_index(thread ? DifOp::ldtaa : DifOp::ldgaa, node.id, reg));
  bind(present);
}

void Generator::store_variable(const Node& node, unsigned reg) {
  if (node.element) push_keys(node);
  DifOp op = node.scope == Scope::global  ? DifOp::stgs
             : node.scope == Scope::local ? DifOp::stls
                                          : DifOp::stts;
  if (node.element) op = node.scope == Scope::thread ? DifOp::sttaa : DifOp::stgaa;
  emit(dif_index(op, node.id, reg));
}

}  // namespace dtmalloc::dtrace
