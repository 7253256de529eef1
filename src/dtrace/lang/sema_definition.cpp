// SPDX-License-Identifier: BSD-2-Clause
// Uses of definitions: inlines, translators and translated values.
// Counterpart:  dt_ident.c (dt_idcook_inline), dt_parser.c (dt_xcook_xlator)
#include <fmt/format.h>

#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

// A name that a definition gives a meaning. False: it has none.
bool Sema::defined_name(Node& node) {
  for (auto at = symbols_.parameters.rbegin(); at != symbols_.parameters.rend(); ++at) {
    if ((*at)->name != node.text) continue;
    node.binding = *at;
    node.type = node.binding->type;
    node.userland = node.binding->userland;
    node.lvalue = true;
    return true;
  }
  const auto found = symbols_.inlines.find(node.text);
  if (found == symbols_.inlines.end()) return false;
  if (found->second->array) {
    fail("D_IDENT_BADREF", node,
         fmt::format("array '{}' may not be referenced as scalar", node.text));
  }
  node.inlined = found->second;
  node.type = node.inlined->type;
  node.userland = node.inlined->userland;
  node.translator = node.inlined->body->translator;
  node.lvalue = true;
  return true;
}

// name[keys] of an inline. False: the name is none.
bool Sema::inline_element(Node& node) {
  const Node& name = *node.children[0];
  if (name.kind != NodeKind::identifier) return false;
  for (const Binding* parameter : symbols_.parameters) {
    if (parameter->name == name.text) return false;
  }
  const auto found = symbols_.inlines.find(name.text);
  if (found == symbols_.inlines.end() || !found->second->array) return false;
  InlineDefinition& definition = *found->second;
  const std::size_t passed = node.children.size() - 1;
  const std::size_t expected = definition.parameters.size();
  if (passed != expected) {
    fail("D_PROTO_LEN", node,
         fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", name.text, passed,
                     passed == 1 ? "" : "s", expected));
  }
  for (std::size_t i = 0; i < passed; ++i) {
    Node& key = *node.children[i + 1];
    expression(key);
    Node shape;
    shape.type = definition.parameters[i].type;
    if (argument_fits(shape, key)) continue;
    fail("D_PROTO_ARG", key,
         fmt::format("{}[ ] key #{} is incompatible with prototype:\n\tprototype: {}\n\t      "
                     "key: {}",
                     name.text, i + 1, types_[shape.type].name, type_name(key)));
  }
  node.inlined = &definition;
  node.type = definition.type;
  node.userland = definition.userland;
  node.translator = definition.body->translator;
  node.lvalue = true;
  return true;
}

bool Sema::may_stand_for(const Node& shape, const Node& body) const {
  if (body.translator != nullptr) {
    // What is translated keeps its type.
    return types_.resolve(shape.type) == types_.resolve(body.type);
  }
  return argument_fits(shape, body);
}

// The translator from exactly this type, or from a pointer that agrees with it.
Translator* Sema::find_translator(TypeId from, TypeId to) const {
  Translator* close = nullptr;
  Node source;
  source.type = from;
  for (const auto& candidate : space_.definitions->translators) {
    if (types_.resolve(candidate->output) != types_.resolve(to)) continue;
    if (types_.resolve(candidate->input.type) == types_.resolve(from)) return candidate.get();
    Node input;
    input.type = candidate->input.type;
    const bool agrees = is_pointer(input) && is_pointer(source) && pointers_agree(input, source);
    if (close == nullptr && agrees) close = candidate.get();
  }
  return close;
}

void Sema::translate(Node& node) {
  Node& value = *node.children[0];
  expression(value);
  if (is_dynamic(value)) {
    fail("D_OP_DYN", node, "operator xlate operands cannot be of dynamic type");
  }
  const Type& wanted = types_[types_.resolve(node.declared)];
  const bool pointer = wanted.kind == TypeKind::pointer;
  const TypeId output = pointer ? wanted.target : node.declared;
  node.translator = find_translator(value.type, output);
  if (node.translator == nullptr) {
    fail("D_XLATE_NONE", node,
         fmt::format("cannot translate from \"{}\" to \"{}\"", type_name(value),
                     types_[node.declared].name));
  }
  node.type = node.declared;
}

// args[n] whose provider translates it; its type is the native one until here. What fits is taken
// as it is; else a translator says what its members are, and the whole has no value.
void Sema::translate_argument(Node& node, TypeId translated) {
  const TypeId native = node.type;
  Node shape;
  shape.type = translated;
  const bool fits = argument_fits(shape, node);
  node.type = translated;
  if (fits) return;
  const Type& wanted = types_[types_.resolve(translated)];
  const TypeId output = wanted.kind == TypeKind::pointer ? wanted.target : translated;
  node.translator = find_translator(native, output);
  if (node.translator == nullptr) {
    fail("D_ARGS_XLATOR", node,
         fmt::format("translator for args[{}] from {} to {} is not defined",
                     node.children[1]->value, types_[native].name, types_[translated].name));
  }
  node.native = native;
}

// The member of a translated value whose type is known: the expression of the translator.
void Sema::translated_member(Node& node) {
  Translator& translator = *node.children[0]->translator;
  const Member* found = types_.member(translator.output, node.text);
  if (found == nullptr) {
    fail("D_TYPE_MEMBER", node,
         fmt::format("{} is not a member of {}", node.text, types_[translator.output].name));
  }
  node.translation = translator.find(node.text);
  if (node.translation == nullptr) {
    fail("D_XLATE_NOCONV", node,
         fmt::format("translator does not define conversion for member: {}", node.text));
  }
  node.type = found->type;
}

}  // namespace dtmalloc::dtrace
