// SPDX-License-Identifier: BSD-2-Clause
// dtrace -S: the objects of a program as text.
// Counterpart:  dt_dis.c
// Differs:      objects have no addresses here: the numbers shown count them, from kFirstObject on.
#include <algorithm>
#include <tuple>
#include <utility>

#include "dtrace/consume/session_impl.hpp"
#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kFirstObject = 0x800000000, kObjectStride = 0x80;

const char* kind_text(TypeKind kind) {
  switch (kind) {
    case TypeKind::none:
    case TypeKind::integer:
      return "integer";
    case TypeKind::floating:
      return "float";
    case TypeKind::pointer:
      return "pointer";
    case TypeKind::array:
      return "array";
    case TypeKind::struct_:
      return "struct";
    case TypeKind::union_:
      return "union";
    case TypeKind::enum_:
      return "enum";
    case TypeKind::function:
      return "function";
    default:
      return "unknown";
  }
}

std::string type_text(const TypeTable& types, TypeId id, std::uint64_t size, bool by_ref,
                      bool userland) {
  const TypeKind kind = id == kNoType ? TypeKind::none : types[types.resolve(id)].kind;
  std::string text = kind == TypeKind::string ? "string" : "D type";
  const char* reference = !by_ref ? "" : userland ? " by user ref" : " by ref";
  append(text, " (%s)%s (size %llu)", kind_text(kind), reference,
         static_cast<unsigned long long>(size));
  return text;
}

// A statement's value is not recorded, but has its type's size.
std::uint64_t result_size(const TypeTable& types, const ValueDesc& result, std::uint32_t strsize) {
  if (result.is_string) return strsize;
  if (result.size != 0 || result.type == kNoType) return result.size;
  return types[types.resolve(result.type)].size;
}

struct Use {
  bool array = false, read = false, written = false;
};
using Uses = std::map<std::pair<Scope, std::uint32_t>, Use>;

// The variables that an object names, by scope and number.
Uses uses_of(const DifObject& object) {
  Uses uses;
  const auto note = [&uses](Scope scope, std::uint32_t id, bool array, bool written) {
    Use& use = uses[{scope, id}];
    use.array = use.array || array;
    (written ? use.written : use.read) = true;
  };
  for (const std::uint32_t instruction : object.text) {
    const DifWord word{instruction};
    switch (static_cast<DifOp>(word.op())) {
      case DifOp::ldgs:
        note(Scope::global, word.index(), false, false);
        break;
      case DifOp::stgs:
        note(Scope::global, word.index(), false, true);
        break;
      case DifOp::ldts:
        note(Scope::thread, word.index(), false, false);
        break;
      case DifOp::stts:
        note(Scope::thread, word.index(), false, true);
        break;
      case DifOp::ldls:
        note(Scope::local, word.index(), false, false);
        break;
      case DifOp::stls:
        note(Scope::local, word.index(), false, true);
        break;
      case DifOp::ldga:
        note(Scope::global, word.r1(), true, false);
        break;
      case DifOp::ldgaa:
        note(Scope::global, word.index(), true, false);
        break;
      case DifOp::stgaa:
        note(Scope::global, word.index(), true, true);
        break;
      case DifOp::ldtaa:
        note(Scope::thread, word.index(), true, false);
        break;
      case DifOp::sttaa:
        note(Scope::thread, word.index(), true, true);
        break;
      default:
        break;
    }
  }
  return uses;
}

void append_variables(std::string& text, const DifObject& object, const ProgramSpace& space,
                      std::uint32_t strsize) {
  static constexpr const char* kScopes[] = {"glb", "loc", "tls"};
  const Uses uses = uses_of(object);
  if (uses.empty()) return;
  append(text, "\n%-16s %-4s %-3s %-3s %-4s %s\n", "NAME", "ID", "KND", "SCP", "FLAG", "TYPE");
  for (const auto& [variable, use] : uses) {
    const auto [scope, id] = variable;
    TypeTable& types = *space.types;
    std::string name, type;
    if (const VariableDesc* user = space.variables.find(scope, id); user != nullptr) {
      name = user->name;
      type = type_text(types, user->value.type, user->value.size, user->value.by_ref,
                       user->value.userland);
    } else {
      name = builtin_name(id);
      const TypeId builtin = types.find(builtin_type(name));
      const bool string = builtin == types.string_type;
      type = type_text(types, builtin,
                       string               ? strsize
                       : builtin == kNoType ? 8
                                            : types[types.resolve(builtin)].size,
                       string, false);
    }
    const std::string flags = std::string(use.read ? "r" : "") +
                              (use.read && use.written ? "/" : "") + (use.written ? "w" : "");
    append(text, "%-16s %-4x %-3s %-3s %-4s %s\n", name.c_str(), id, use.array ? "arr" : "scl",
           kScopes[static_cast<std::size_t>(scope)], flags.c_str(), type.c_str());
  }
}

// The objects of a clause in the order in which they are made.
std::vector<const VerifiedDif*> objects_of(const Clause& clause) {
  std::vector<const VerifiedDif*> objects;
  if (clause.predicate) objects.push_back(&*clause.predicate);
  for (const Action& action : clause.actions) {
    for (const Value& value : action.values) objects.push_back(&value.dif);
    if (action.argument) objects.push_back(&action.argument->dif);
    if (action.increment) objects.push_back(&action.increment->dif);
  }
  return objects;
}

}  // namespace

std::string Session::Impl::dif_listing(ProgramId program) const {
  std::uint64_t number = 0;
  for (ProgramId before = 0; before < program; ++before)
    for (const Clause& clause : programs[before].program->clauses)
      number += objects_of(clause).size();
  std::string text;
  for (const Clause& clause : programs[program].program->clauses) {
    for (const VerifiedDif* dif : objects_of(clause)) {
      const DifObject& object = dif->object();
      const ValueDesc& result = object.result;
      append(text, "\nDIFO 0x%llx returns %s\n",
             static_cast<unsigned long long>(kFirstObject + kObjectStride * number++),
             type_text(*space.types, result.type, result_size(*space.types, result, strsize()),
                       result.by_ref, result.userland)
                 .c_str());
      text += disassemble(object, &space.variables);
      append_variables(text, object, space, strsize());
    }
  }
  return text;
}

}  // namespace dtmalloc::dtrace
