// SPDX-License-Identifier: BSD-2-Clause
// Names: variables, args[], constants, calls of subroutines.
// Counterpart:  dt_ident.c
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

std::vector<std::string_view> split_arguments(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    parts.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return parts;
}

}  // namespace

void Sema::unknown_identifier(const Node& node, const std::string& shown) {
  Diagnostic diagnostic =
      source_.diagnostic("D_IDENT_UNDEF", node.place,
                         fmt::format("failed to resolve {}: Unknown variable name", shown));
  diagnostic.near_names = nearest_names(node.text, all_names(space_, input_.version));
  throw CompileError{std::move(diagnostic)};
}

void Sema::identifier(Node& node) {
  const std::string plain = node.text.starts_with("D`") ? node.text.substr(2) : node.text;
  const auto external = space_.externs.find(plain);
  if (node.text.find('`') != std::string::npos &&
      (external == space_.externs.end() || plain == node.text)) {
    return symbol(node);
  }
  if (defined_name(node)) return;
  if (const NamedConstant* constant = find_constant(node.text)) {
    const TypeId type = node.text == "NULL" ? types_.long_type : types_.int_type;
    set_constant(node, type, static_cast<std::uint64_t>(constant->value));
    return;
  }
  if (const BuiltinVariable* builtin = find_builtin(node.text, input_.version)) {
    if (node.text == "curthread") types_.forward_struct("thread");
    node.type = types_.find_kernel(builtin->type);
    node.id = builtin->id;
    node.scope = Scope::global;
    node.lvalue = true;
    return;
  }
  if (const VariableDesc* variable = find_variable(Scope::global, node.text)) {
    return use_variable(node, *variable);
  }
  std::int32_t value = 0;
  if (types_.find_enumerator(node.text, &value) != kNoType) {
    set_constant(node, types_.int_type, static_cast<std::uint64_t>(std::int64_t{value}));
    return;
  }
  if (external != space_.externs.end()) {
    node.type = external->second;
    node.lvalue = node.external = true;
    return;
  }
  if (is_builtin_array(node.text)) {
    fail("D_IDENT_BADREF", node,
         fmt::format("array '{}' may not be referenced as scalar", node.text));
  }
  if (const FunctionInfo* function = find_function(node.text, input_.version)) {
    fail("D_IDENT_BADREF", node,
         fmt::format("{} '{}' may not be referenced as scalar", kind_name(function->kind),
                     node.text));
  }
  unknown_identifier(node, node.text);
}

// args[n]: the type that the provider gives the argument, if the probes matched are of one kind.
void Sema::probe_argument(Node& node) {
  if (clause_.outside) {
    fail("D_ARGS_NONE", node, "args[ ] may not be referenced outside of a probe clause");
  }
  if (node.children.size() != 2) {
    fail("D_PROTO_LEN", node,
         fmt::format("args[ ] prototype mismatch: {} args passed, 1 expected",
                     node.children.size() - 1));
  }
  Node& position = *node.children[1];
  expression(position);
  if (!position.constant || !is_integer(position)) {
    fail("D_PROTO_ARG", node,
         fmt::format("args[ ] argument #1 is incompatible with prototype:\n\tprototype: integer "
                     "constant\n\t argument: {}",
                     type_name(position)));
  }
  const ProbeDescription& wanted = clause_.description;
  const std::string shown = to_string(wanted);
  if (clause_.matches > 1) {
    const ProviderAttributes& attributes = clause_.probe.attributes;
    const auto vague = [](const Attribute& attribute, const std::string& field) {
      return attribute.name >= Stability::evolving && (field.empty() || is_glob(field));
    };
    if (attributes.args.data < Stability::evolving || vague(attributes.provider, wanted.provider) ||
        vague(attributes.module, wanted.module) || vague(attributes.function, wanted.function) ||
        vague(attributes.name, wanted.name)) {
      fail("D_ARGS_MULTI", node,
           fmt::format("args[ ] may not be referenced because probe description {} matches an "
                       "unstable set of probes",
                       shown));
    }
  }
  const std::vector<std::string>& arguments = clause_.probe.arguments;
  if (position.value >= arguments.size()) {
    fail("D_ARGS_IDX", node,
         fmt::format("index {} is out of range for {} args[ ]",
                     static_cast<std::int64_t>(position.value),
                     wanted.id != kNoProbe ? to_string(clause_.probe.description) : shown));
  }
  // What it is translated to is looked for first.
  const std::vector<std::string>& translations = clause_.probe.translated;
  TypeId translated = kNoType;
  if (position.value < translations.size() && !translations[position.value].empty()) {
    translated = types_.find(translations[position.value]);
    if (translated == kNoType) {
      fail("D_ARGS_TYPE", node,
           fmt::format("failed to resolve translated type for args[{}]", position.value));
    }
  }
  node.type = types_.find_kernel(arguments[position.value]);
  if (node.type == kNoType) {
    fail("D_ARGS_TYPE", node,
         fmt::format("failed to resolve native type for args[{}]", position.value));
  }
  node.lvalue = true;
  node.id = kVarArgs;
  if (translated != kNoType) translate_argument(node, translated);
}

void Sema::check_arguments(Node& call, const FunctionInfo& info) {
  const std::vector<std::string_view> wanted = split_arguments(info.arguments);
  std::size_t required = 0;
  for (const std::string_view argument : wanted) required += argument.starts_with('?') ? 0 : 1;
  const std::size_t passed = call.children.size() - 1;
  if (passed < required || passed > wanted.size()) {
    fail(
        "D_PROTO_LEN", call,
        fmt::format("{}( ) prototype mismatch: {} arg{} passed, {}{} expected", info.name, passed,
                    passed == 1 ? "" : "s", required < wanted.size() ? "at least " : "", required));
  }
  for (std::size_t i = 0; i < passed; ++i) {
    Node& argument = *call.children[i + 1];
    expression(argument);
    std::string_view type = wanted[i];
    if (type.starts_with('?')) type.remove_prefix(1);
    Node shape;
    shape.type = types_.find(type);
    if (!argument_fits(shape, argument)) {
      fail("D_PROTO_ARG", argument,
           fmt::format("{}( ) argument #{} is incompatible with prototype:\n\tprototype: {}\n\t "
                       "argument: {}",
                       info.name, i + 1, type, type_name(argument)));
    }
  }
}

void Sema::call(Node& node) {
  const Node& designator = *node.children[0];
  if (designator.kind != NodeKind::identifier) {
    fail("D_FUNC_IDENT", designator, "function designator is not of function type");
  }
  const FunctionInfo* info = find_function(designator.text, input_.version);
  if (info == nullptr) {
    if (const GlobalName known = global_name(designator.text, space_, symbols_, input_.version);
        !known.kind.empty()) {
      fail("D_FUNC_IDKIND", designator,
           fmt::format("{} '{}' may not be referenced as a function", known.kind, designator.text));
    }
    Diagnostic diagnostic =
        source_.diagnostic("D_FUNC_UNDEF", designator.place,
                           fmt::format("undefined function name: {}", designator.text));
    diagnostic.near_names = nearest_names(designator.text, all_names(space_, input_.version));
    throw CompileError{std::move(diagnostic)};
  }
  switch (info->kind) {
    case FunctionKind::action:
    case FunctionKind::aggregating:
      no_value(node, info->kind);
    case FunctionKind::subroutine:
      break;
  }
  node.type = types_.find(info->result);
  if (node.type == kNoType) {
    const bool scoped = info->result.find('`') != std::string_view::npos;
    fail("D_UNKNOWN", designator,
         fmt::format("failed to resolve type of function {}#0 ({}): Unknown {} name", info->name,
                     info->result, scoped ? "module" : "type"));
  }
  check_arguments(node, *info);
  node.id = info->id;
  node.writes_target = type_of(node).kind == TypeKind::pointer;
}

}  // namespace dtmalloc::dtrace
