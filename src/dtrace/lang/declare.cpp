// SPDX-License-Identifier: BSD-2-Clause
// Declared names: typedefs, symbols and variables enter the spaces of the consumer, or are refused
// because of what the name means already.
// Counterpart:  dt_parser.c (dt_node_decl)
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dtrace/lang/parser.hpp"

namespace dtmalloc::dtrace {
namespace {

std::string_view variable_kind(const VariableDesc& variable) {
  return variable.array ? "array" : "scalar";
}

}  // namespace

std::uint32_t new_variable_id(const SourceText& source, ProgramSpace& space, Scope scope,
                              const std::string& name, const Place& place) {
  std::uint32_t& count = space.count(scope);
  if (kVarUser + count > 0xffff) {
    source.fail("D_ID_OFLOW", place,
                fmt::format("cannot create {}: limit on number of {} variables exceeded", name,
                            scope == Scope::local    ? "local"
                            : scope == Scope::thread ? "thread-local"
                                                     : "global"));
  }
  return kVarUser + count++;
}

ValueDesc describe_type(const TypeTable& types, TypeId id) {
  const Type& type = types[types.resolve(id)];
  ValueDesc desc;
  desc.type = id;
  desc.is_signed = type.is_signed;
  // A value of 4 GB or more is refused before it is kept or recorded (kStatvarMax, bufsize).
  desc.size = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(type.size, std::numeric_limits<std::uint32_t>::max()));
  switch (type.kind) {
    case TypeKind::string:
      desc.by_ref = desc.is_string = true;
      break;
    case TypeKind::struct_:
    case TypeKind::union_:
    case TypeKind::array:
      desc.by_ref = true;
      break;
    default:
      desc.by_ref = type.size > 8;  // long double
      break;
  }
  return desc;
}

void Parser::declare(const Specifiers& specifiers, const Declarator& declarator) {
  if (declarator.name.find('`') != std::string::npos) {
    source_.fail("D_DECL_SCOPE", declarator.place,
                 fmt::format("D scoping operator may not be used in a declaration name ({})",
                             declarator.name));
  }
  const bool function = types_[types_.resolve(declarator.type)].kind == TypeKind::function;
  switch (specifiers.storage) {
    case Storage::static_:
      if (function) return declare_extern(declarator);
      [[fallthrough]];
    case Storage::auto_:
    case Storage::register_:
      source_.fail("D_DECL_BADCLASS", specifiers.place,
                   "specified storage class not appropriate in D");
    case Storage::extern_:
      return declare_extern(declarator);
    case Storage::typedef_:
      return declare_typedef(declarator);
    case Storage::none:
      if (function) return declare_extern(declarator);
      return declare_variable(Scope::global, declarator);
    case Storage::self:
      return declare_variable(Scope::thread, declarator);
    case Storage::this_:
      return declare_variable(Scope::local, declarator);
  }
}

void Parser::declare_typedef(const Declarator& declarator) {
  const std::string& name = declarator.name;
  if (!known(name).kind.empty()) {
    source_.fail("D_DECL_IDRED", declarator.place,
                 fmt::format("global variable identifier redeclared: {}", name));
  }
  if (types_.find("D`" + name) != kNoType) {
    source_.fail("D_DECL_IDRED", declarator.place, fmt::format("typedef redeclared: {}", name));
  }
  types_.declare_typedef(name, declarator.type);
}

void Parser::declare_extern(const Declarator& declarator) {
  const auto [found, made] = space_.externs.try_emplace(declarator.name, declarator.type);
  if (!made && found->second != declarator.type) {
    source_.fail(
        "D_DECL_IDRED", declarator.place,
        fmt::format("identifier redeclared: D`{}\n\t current: {}\n\tprevious: {}", declarator.name,
                    types_[declarator.type].name, types_[found->second].name));
  }
}

void Parser::declare_variable(Scope scope, const Declarator& declarator) {
  const std::string& name = declarator.name;
  const Place& place = declarator.place;
  const bool array =
      declarator.element != kNoType && declarator.derivations.front().kind == Derivation::tuple;
  const TypeId type = array ? declarator.element : declarator.type;
  if (!declarator.derivations.empty() && declarator.derivations.front().unsized) {
    source_.fail(
        "D_DECL_ARRNULL", place,
        fmt::format("array declaration requires array dimension or tuple signature: {}", name));
  }
  const GlobalName before = scope == Scope::global ? known(name) : GlobalName();
  if (before.builtin) {
    source_.fail("D_DECL_IDRED", place, fmt::format("built-in identifier redeclared: {}", name));
  }
  if (types_.find("D`" + name) != kNoType) {
    source_.fail("D_DECL_IDRED", place, fmt::format("typedef identifier redeclared: {}", name));
  }
  if (array && scope == Scope::local) {
    source_.fail(
        "D_DECL_LOCASSC", place,
        fmt::format("associative arrays may not be declared as local variables: {}", name));
  }
  VariableDesc now{name, scope, kVarUser, describe_type(types_, type)};
  now.array = array;
  now.value.userland = declarator.userland;
  if (array) {
    for (const Declarator& key : declarator.derivations.front().parameters) {
      now.keys.push_back(describe_type(types_, key.type));
    }
  }
  Symbols::Names& names = symbols_.of(scope);
  if (const auto found = names.find(name); found != names.end()) {
    return check_redeclaration(space_.variables[found->second], now, place);
  }
  if (!before.kind.empty()) {
    source_.fail(
        "D_DECL_IDRED", place,
        fmt::format("identifier redeclared: {}\n\t current: {} {}\n\tprevious: {} {}", name,
                    variable_kind(now), types_[type].name, before.kind, before.what));
  }
  const Type& resolved = types_[types_.resolve(type)];
  switch (resolved.kind) {
    case TypeKind::dynamic:  // by a typedef of an associative array
    case TypeKind::void_:
    case TypeKind::function:
      source_.fail("D_DECL_VOIDOBJ", place, fmt::format("cannot have void object: {}", name));
    case TypeKind::struct_:
    case TypeKind::union_:
    case TypeKind::enum_:
      if (resolved.size != 0) break;
      source_.fail("D_DECL_INCOMPLETE", place,
                   fmt::format("incomplete struct/union/enum {}: {}", types_[type].name, name));
    case TypeKind::array:
      if (resolved.size == 0) {
        source_.fail("D_DECL_VOIDOBJ", place, fmt::format("cannot have void object: {}", name));
      }
      break;
    default:
      break;
  }
  now.id = new_variable_id(source_, space_, scope, name, place);
  names.emplace(name, space_.variables.size());
  space_.variables.push_back(std::move(now));
}

// Declaring a variable again is no error if nothing changes.
void Parser::check_redeclaration(const VariableDesc& before, const VariableDesc& now,
                                 const Place& place) const {
  const auto type = [this](const ValueDesc& desc) -> const std::string& {
    return types_[desc.type].name;
  };
  const auto fail = [&](const std::string& current, const std::string& previous) {
    source_.fail("D_DECL_IDRED", place,
                 fmt::format("identifier redeclared: {}\n\t current: {}\n\tprevious: {}", now.name,
                             current, previous));
  };
  if (before.array != now.array || before.value.type != now.value.type) {
    fail(fmt::format("{} {}", variable_kind(now), type(now.value)),
         fmt::format("{} {}", variable_kind(before), type(before.value)));
  }
  for (std::size_t i = 0; i < std::min(before.keys.size(), now.keys.size()); ++i) {
    if (before.keys[i].type == now.keys[i].type) continue;
    fail(fmt::format("array, key #{} of type {}", i + 1, type(now.keys[i])),
         fmt::format("array, key #{} of type {}", i + 1, type(before.keys[i])));
  }
  if (before.keys.size() != now.keys.size()) {
    fail(fmt::format("array of {}, tuple length {}", type(now.value), now.keys.size()),
         fmt::format("array of {}, tuple length {}", type(before.value), before.keys.size()));
  }
}

}  // namespace dtmalloc::dtrace
