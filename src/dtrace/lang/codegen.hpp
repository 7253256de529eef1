// SPDX-License-Identifier: BSD-2-Clause
// The code generator's state: the object so far and the registers in use.
// Invariants:   a function that returns a register has allocated it; the caller releases it.
#pragma once

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

class Generator {
 public:
  Generator(const SourceText& source, TypeTable& types) : source_(source), types_(types) {
    object_.strings.assign(1, '\0');
  }
  DifObject take(const Node& node, const ValueDesc& result);

 private:
  using Label = std::vector<std::size_t>;  // branches that wait for their target

  void emit(std::uint32_t word) {
    if (object_.text.size() == kMostInstructions) too_long();
    object_.text.push_back(word);
  }
  [[noreturn]] void too_long() const;
  void branch(DifOp op, Label& label);
  void bind(Label& label);
  unsigned allocate(const Node& node);
  [[noreturn]] void unresolved(const Node& node) const;
  void release(unsigned reg) { used_ &= ~(1U << reg); }
  void set_integer(unsigned reg, std::uint64_t value, const Node& node);
  unsigned integer(std::uint64_t value, const Node& node);
  unsigned string(const Node& node);
  [[noreturn]] void too_big(const Node& node, std::string_view which) const {
    source_.fail("D_SIM_LIMIT", node.place, std::string(which) + " constant table limit exceeded");
  }
  const Type& type(TypeId id) const { return types_[types_.resolve(id)]; }
  const Type& type(const Node& node) const { return type(node.type); }
  bool is_string(const Node& node) const { return type(node).kind == TypeKind::string; }
  bool is_address(const Node& node) const;
  std::uint64_t element_size(const Node& pointer) const {
    return is_string(pointer) ? 1 : type(type(pointer).target).size;
  }
  static bool kept_by_address(TypeKind kind);
  bool is_kept_by_reference(const Node& node) const {
    return kept_by_address(type(node).kind) || type(node).size > 8;
  }

  // --- memory
  // What lies at the address in reg, into reg: addresses stay what they are.
  void load(unsigned reg, const Node& node);
  void store(unsigned value, unsigned address, const Node& node);
  void store_bit_field(unsigned value, unsigned address, const Node& node);
  void copy(unsigned from, unsigned address, const Node& target, const Node& source);
  void scale(unsigned reg, std::uint64_t size, const Node& node);
  // The address of an lvalue in memory.
  unsigned address(const Node& node);

  // --- variables (codegen_var.cpp)
  static bool is_variable(const Node& node) {
    return node.kind == NodeKind::identifier || node.kind == NodeKind::local ||
           node.kind == NodeKind::thread || node.element;
  }
  unsigned load_variable(const Node& node);
  void fault_in(const Node& node, unsigned reg);
  // The keys of an element are computed again: for x[k] += 1 once for the load, once for the store.
  void store_variable(const Node& node, unsigned reg);
  void push_keys(const Node& node);

  // --- definitions (codegen_definition.cpp)
  static constexpr std::uint32_t kMaxExpansions = 64;
  void descend();
  unsigned bound(const Node& node);
  unsigned inlined(const Node& node);
  static const Node& source_of(const Node& node);
  unsigned translated(const Node& value, const Node& expression_of, TypeId type);
  unsigned translate(const Node& node);

  // --- expressions
  unsigned expression(const Node& node);
  unsigned argument(const Node& node);
  void shift_pair(unsigned reg, unsigned bits, bool is_signed, const Node& node);
  // Cuts a value to a type of at most its size; extends a signed narrow one.
  void convert(unsigned reg, TypeId from, TypeId to, const Node& node);
  // 1 in reg where the condition holds, 0 elsewhere.
  void truth(unsigned reg, DifOp condition, const Node& node);
  unsigned unary(const Node& node);
  // ++ and --: the value before (postfix) or after.
  unsigned step(const Node& node, bool before);
  bool promoted_signed(const Node& left, const Node& right) const {
    return type(types_.promote(left.type, right.type)).is_signed;
  }
  void arithmetic(Op op, const Node& left, const Node& right, unsigned l, unsigned r);
  unsigned sum(const Node& node);
  unsigned compare(const Node& node);
  // && and ||: `end` is the condition of a tested operand that settles the result.
  unsigned short_circuit(const Node& node, DifOp end, bool settled);
  unsigned exclusive(const Node& node);
  unsigned binary(const Node& node);
  unsigned assign(const Node& node);
  unsigned conditional(const Node& node);
  unsigned call(const Node& node);

  // 256 KiB: definitions are written out at each use, and an update of an element holds the code of
  // its keys twice.
  static constexpr std::size_t kMostInstructions = (std::size_t{256} << 10) / 4;

  const SourceText& source_;
  TypeTable& types_;
  Place place_;  // of the whole expression
  std::uint32_t nested_ = 0;
  DifObject object_;
  unsigned used_ = 1;  // r0
};

}  // namespace dtmalloc::dtrace
