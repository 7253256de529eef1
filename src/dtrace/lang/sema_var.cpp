// SPDX-License-Identifier: BSD-2-Clause
// Variables: their first use, x, this->x, self->x, and elements of associative arrays.
// Counterpart:  dt_ident.c (dt_idcook_assc, dt_idcook_sign), dt_parser.c (dt_xcook_ident)
// Invariants:   the first store to a variable fixes its type, the first use of an array the number
//               and types of its keys.
#include <fmt/format.h>

#include <algorithm>

#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

bool names_variable(const Node& node) {
  return node.kind == NodeKind::identifier || node.kind == NodeKind::local ||
         node.kind == NodeKind::thread;
}

Scope scope_of(const Node& node) {
  return node.kind == NodeKind::local    ? Scope::local
         : node.kind == NodeKind::thread ? Scope::thread
                                         : Scope::global;
}

std::string_view scope_prefix(Scope scope) {
  return scope == Scope::local ? "this->" : scope == Scope::thread ? "self->" : "";
}

}  // namespace

const VariableDesc* Sema::find_variable(Scope scope, const std::string& name) const {
  const Symbols::Names& names = symbols_.of(scope);
  const auto found = names.find(name);
  return found == names.end() ? nullptr : &space_.variables[found->second];
}

void Sema::use_variable(Node& node, const VariableDesc& variable) const {
  if (variable.array && node.kind != NodeKind::index) {
    fail("D_IDENT_BADREF", node,
         fmt::format("array '{}' may not be referenced as scalar", node.text));
  }
  node.type = variable.value.type;
  node.id = variable.id;
  node.scope = variable.scope;
  node.lvalue = node.writable = true;
  node.userland = variable.value.userland;
  node.writes_target = leads_on(node);
}

[[noreturn]] static void undefined_variable(const SourceText& source, const ProgramSpace& space,
                                            const Node& node) {
  const Scope scope = scope_of(node);
  Diagnostic diagnostic = source.diagnostic(
      "D_VAR_UNDEF", node.place,
      fmt::format("{}{} has not yet been declared or assigned", scope_prefix(scope), node.text));
  std::vector<std::string> names;
  for (const VariableDesc& candidate : space.variables) {
    if (candidate.scope == scope) names.push_back(candidate.name);
  }
  diagnostic.near_names = nearest_names(node.text, names);
  throw CompileError{std::move(diagnostic)};
}

void Sema::scoped_variable(Node& node) {
  const VariableDesc* variable = find_variable(scope_of(node), node.text);
  if (variable == nullptr) undefined_variable(source_, space_, node);
  use_variable(node, *variable);
}

// Of the inline or translator that is read.
bool Sema::is_parameter(const std::string& name) const {
  return std::any_of(symbols_.parameters.begin(), symbols_.parameters.end(),
                     [&](const Binding* parameter) { return parameter->name == name; });
}

// Whether a store makes the variable that the node names.
bool Sema::may_define(const Node& node) const {
  if (!names_variable(node) || find_variable(scope_of(node), node.text) != nullptr) return false;
  if (node.kind != NodeKind::identifier) return true;
  return node.text.find('`') == std::string::npos && !is_parameter(node.text) &&
         global_name(node.text, space_, symbols_, input_.version).kind.empty();
}

void Sema::target(Node& node, TypeId type, bool userland) {
  if (node.kind == NodeKind::index) {
    node.type = kNoType;
    node.constant = node.writes_target = node.null = node.element = false;
    if (array_element(node, type, userland)) return;
  }
  if (may_define(node)) define_variable(node, type, userland);
  expression(node);
}

void Sema::define_variable(const Node& node, TypeId type, bool userland,
                           const std::vector<Node*>& keys) {
  const Scope scope = scope_of(node);
  if (types_[types_.resolve(type)].bits != 0) type = types_[types_.resolve(type)].target;
  const Type& resolved = types_[types_.resolve(type)];
  switch (resolved.kind) {
    case TypeKind::integer:
    case TypeKind::enum_:
    case TypeKind::pointer:
    case TypeKind::string:
      break;
    case TypeKind::struct_:
    case TypeKind::union_:
      if (resolved.size != 0) break;
      fail("D_DECL_INCOMPLETE", node,
           fmt::format("incomplete struct/union/enum {}: {}", resolved.name, node.text));
    case TypeKind::array:
      fail("D_OP_ARRFUN", node,
           fmt::format("operator = may not be applied to operand of type \"{}\"",
                       types_[type].name));
    default:
      fail("D_DECL_VOIDOBJ", node, fmt::format("cannot have void object: {}", node.text));
  }
  const std::uint32_t id = new_variable_id(source_, space_, scope, node.text, node.place);
  Node shape;
  shape.type = type;
  shape.userland = userland;
  VariableDesc variable{node.text, scope, id, describe(shape)};
  variable.array = !keys.empty();
  for (const Node* key : keys) variable.keys.push_back(describe(*key));
  symbols_.of(scope).emplace(node.text, space_.variables.size());
  space_.variables.push_back(std::move(variable));
}

void Sema::array_key(Node& key, std::size_t number) {
  expression(key);
  if (is_dynamic(key) || type_of(key).size == 0) {
    fail("D_KEY_TYPE", key,
         fmt::format("{} expression may not be used as array index: key #{}", type_name(key),
                     number));
  }
  const ValueDesc desc = describe(key);
  key.key_size = desc.by_ref ? desc.size : 0;
}

void Sema::check_keys(const Node& node, const VariableDesc& array) {
  const std::size_t passed = node.children.size() - 1;
  if (passed != array.keys.size()) {
    fail("D_PROTO_LEN", node,
         fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", array.name, passed,
                     passed == 1 ? "" : "s", array.keys.size()));
  }
  for (std::size_t i = 0; i < passed; ++i) {
    const Node& key = *node.children[i + 1];
    Node shape;
    shape.type = array.keys[i].type;
    if (argument_fits(shape, key)) continue;
    fail("D_PROTO_ARG", key,
         fmt::format("{}[ ] key #{} is incompatible with prototype:\n\tprototype: {}\n\t      key: "
                     "{}",
                     array.name, i + 1, types_[shape.type].name, type_name(key)));
  }
}

bool Sema::array_element(Node& node, TypeId defined, bool userland) {
  const Node& name = *node.children[0];
  if (!names_variable(name)) return false;
  if (name.kind == NodeKind::identifier && is_parameter(name.text)) return false;
  const Scope scope = scope_of(name);
  const VariableDesc* array = find_variable(scope, name.text);
  if (array != nullptr ? !array->array : scope == Scope::local || !may_define(name)) return false;
  for (std::size_t i = 1; i < node.children.size(); ++i) array_key(*node.children[i], i);
  array = find_variable(scope, name.text);  // a key may be the first store to it
  if (array == nullptr) {
    if (defined == kNoType) undefined_variable(source_, space_, name);
    const std::vector<Node*> keys(node.children.begin() + 1, node.children.end());
    define_variable(name, defined, userland, keys);
    array = find_variable(scope, name.text);
  } else {
    check_keys(node, *array);
  }
  if (array->keys.size() > kDifTupleRegisters) too_many_keys(node);
  node.element = true;
  use_variable(node, *array);
  return true;
}

// libdtrace says so of the whole program: without tag and place.
void Sema::too_many_keys(const Node& node) const {
  Diagnostic diagnostic = source_.diagnostic("", node.place, "");
  diagnostic.message = "Insufficient tuple registers to generate code";
  throw CompileError{std::move(diagnostic)};
}

}  // namespace dtmalloc::dtrace
