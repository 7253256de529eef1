// SPDX-License-Identifier: BSD-2-Clause
// A slow, obvious evaluator of D expressions: walks the tree, no bytecode, no registers. What it
// says is what the compiler and the interpreter must say, faults included.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "dtrace/lang/ast.hpp"

namespace dtmalloc::dtrace::reference {

struct EvalValue {
  std::uint64_t bits = 0;
  std::optional<std::string> text;  // a text that has no kernel address
  std::string variable = {};        // a string variable: its text is read when it is used
  bool constant = false;
};

struct EvalFault {
  Fault fault;
  std::uint64_t address;
};

class Evaluator {
 public:
  // `state` gives built-in variables and the kernel's memory, and room for the variables that are
  // structs or arrays; its other variables are not used.
  Evaluator(const TypeTable& types, DifState& state) : types_(types), state_(state) {}

  EvalValue evaluate(const Node& node);  // throws EvalFault
  std::string text_of(const EvalValue& value, bool null_is_empty);

  std::map<std::string, EvalValue> variables;  // "x", "this->x", "self->x", elements
  std::string tokens;                          // what strtok() has not yet returned

  static std::string scope_of(const Node& node);  // "this->"
  static bool is_named(const Node& node) {
    return node.kind == NodeKind::identifier || node.kind == NodeKind::local ||
           node.kind == NodeKind::thread || node.element;
  }

 private:
  EvalValue variable(const std::string& name);
  EvalValue element_of_array(const Node& node);
  // What the left side of a store names: for an element of an array, its keys are evaluated.
  std::string name_of(const Node& node);
  EvalValue unary(const Node& node);
  EvalValue binary(const Node& node);
  EvalValue assign(const Node& node);
  EvalValue call(const Node& node);
  EvalValue load(std::uint64_t address, const Node& node);
  EvalValue inlined(const Node& node);
  static EvalValue converted(EvalValue value, const Type& from, const Type& to);
  // Objects in memory.
  bool is_object(const Node& node) const;  // a struct, union or array
  std::uint64_t address_of(const Node& node);
  std::uint64_t read(std::uint64_t address, const Node& node);
  void write(std::uint64_t address, const Node& node, std::uint64_t value);
  std::byte* bytes(std::uint64_t address, std::uint64_t size);
  EvalValue element(const EvalValue& base, const Node& node, std::int64_t index);
  std::uint64_t arithmetic(Op op, const Node& left, const Node& right, std::uint64_t l,
                           std::uint64_t r, bool constant);
  const Type& type_of(const Node& node) const { return types_[types_.resolve(node.type)]; }
  const Type& element_of(const Type& pointer) const;
  bool is_text(const Node& node) const { return type_of(node).kind == TypeKind::string; }
  bool is_address(const Node& node) const;
  bool is_signed(const Node& left, const Node& right) const;

  const TypeTable& types_;
  DifState& state_;
  std::map<std::string, std::string>
      texts_;  // of string variables; one that is NULL keeps its last
};

}  // namespace dtmalloc::dtrace::reference
