// SPDX-License-Identifier: BSD-2-Clause
// Definitions outside clauses, inlines, translators, providers; and what uses them.
// Counterpart:  dt_parser.c (dt_node_inline, dt_node_xlator, dt_node_provider)
#include <fmt/format.h>

#include <algorithm>

#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/parser.hpp"

namespace dtmalloc::dtrace {
namespace {

// Names of parameters are known while a definition is read.
class NameScope {
 public:
  explicit NameScope(std::vector<Binding*>& names) : names_(names), size_(names.size()) {}
  ~NameScope() { names_.resize(size_); }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  std::vector<Binding*>& names_;
  std::size_t size_;
};

}  // namespace

// The types of a definition's expression, which stands in no clause.
Attribute Parser::settle(Node& node) {
  Sema sema = outside();
  sema.expression(node);
  return sema.attribute(node);
}

void Parser::not_scoped(const Token& name, std::string_view what) const {
  if (name.text.find('`') == std::string::npos) return;
  source_.fail(
      "D_DECL_SCOPE", name.place,
      fmt::format("D scoping operator may not be used in a {} name ({})", what, name.text));
}

void Parser::inline_definition() {
  advance();
  for (const std::string_view word : {"auto", "register", "static", "extern", "typedef"}) {
    if (!at_keyword(word)) continue;
    source_.fail("D_DECL_BADCLASS", token_.place,
                 "specified storage class not appropriate for inline declaration");
  }
  if (at_keyword("self") || at_keyword("this")) {
    source_.fail("D_DECL_BADCLASS", token_.place,
                 "specified storage class not appropriate for inline declaration");
  }
  auto definition = std::make_unique<InlineDefinition>();
  const TypeId type = pointers_to_specifiers(&definition->userland);
  if (token_.kind == Tok::semicolon || at(Op::assign)) {
    source_.fail("D_DECL_USELESS", token_.place, "inline declaration requires a name");
  }
  if (token_.kind != Tok::identifier) syntax_error();
  const Token name = token_;
  advance();
  not_scoped(name, "declaration");
  definition->name = name.text;
  definition->type = type;
  if (token_.kind == Tok::lbracket) inline_keys(*definition, name);
  check_inline(*definition, name);
  const NameScope scope(symbols_.parameters);
  for (Binding& parameter : definition->parameters) symbols_.parameters.push_back(&parameter);
  if (!at(Op::assign)) syntax_error();
  advance();
  Node& body = assignment();
  if (token_.kind != Tok::semicolon) syntax_error();
  definition->attribute = settle(body);
  Node shape;
  shape.type = type;
  const Sema sema = outside();
  if (!sema.may_stand_for(shape, body)) {
    source_.fail("D_OP_INCOMPAT", body.place,
                 fmt::format("inline {} definition uses incompatible types: \"{}\" = \"{}\"",
                             name.text, types_[type].name, sema.type_name(body)));
  }
  definition->body = &body;
  symbols_.inlines.emplace(name.text, definition.get());
  space_.definitions->inlines.push_back(std::move(definition));
  advance();
}

// A type without a declarator: specifiers and asterisks.
TypeId Parser::pointers_to_specifiers(bool* userland) {
  const Specifiers specifiers = declaration_specifiers(false);
  if (userland != nullptr) *userland = specifiers.userland;
  return pointers(specifiers.type);
}

TypeId Parser::pointers(TypeId type) {
  while (at(Op::mul) || at_keyword("const") || at_keyword("volatile")) {
    if (at(Op::mul)) type = nested(types_.pointer_to(type), token_.place);
    advance();
  }
  return type;
}

// [int a, string b]
void Parser::inline_keys(InlineDefinition& definition, const Token& name) {
  advance();
  definition.array = true;
  if (token_.kind == Tok::rbracket) {
    source_.fail("D_DECL_ARRNULL", name.place,
                 fmt::format("inline declaration requires array tuple signature: {}", name.text));
  }
  if (!at_type()) {
    source_.fail("D_DECL_ARRNULL", name.place,
                 fmt::format("inline declaration cannot be of scalar array type: {}", name.text));
  }
  std::unordered_set<std::string> names;
  for (;;) {
    const Place place = token_.place;
    Binding parameter;
    if (!at_type()) syntax_error();
    parameter.type = pointers_to_specifiers(&parameter.userland);
    const std::size_t number = definition.parameters.size() + 1;
    const TypeKind kind = types_[types_.resolve(parameter.type)].kind;
    if (kind == TypeKind::void_) {
      source_.fail(
          "D_DECL_PROTO_TYPE", place,
          fmt::format("array prototype may not use parameter of type {}: {}, parameter "
                      "#{}",
                      types_[parameter.type].name,
                      token_.kind == Tok::identifier ? token_.text : "(anonymous)", number));
    }
    if (token_.kind == Tok::identifier) {
      parameter.name = token_.text;
      if (!names.insert(parameter.name).second) {
        source_.fail("D_DECL_PROTO_FORM", token_.place,
                     fmt::format("parameter is already declared in array prototype: {}, parameter "
                                 "#{}",
                                 parameter.name, number));
      }
      advance();
    }
    definition.parameters.push_back(std::move(parameter));
    if (!at(Op::comma)) break;
    advance();
  }
  expect(Tok::rbracket);
}

void Parser::check_inline(const InlineDefinition& definition, const Token& name) const {
  if (const GlobalName before = known(name.text); !before.kind.empty()) {
    source_.fail("D_DECL_IDRED", name.place,
                 fmt::format("identifier redefined: {}\n\t current: inline definition\n\tprevious: "
                             "{} {}",
                             name.text, before.kind, before.what));
  }
  const TypeKind type = types_[types_.resolve(definition.type)].kind;
  if (type == TypeKind::void_) {
    source_.fail("D_DECL_VOIDOBJ", name.place,
                 fmt::format("cannot declare void inline: {}", name.text));
  }
}

// An inline that is a constant is that constant.
Node* Parser::inline_constant(const Place& place) {
  const auto shadows = [this](const Binding* binding) { return binding->name == token_.text; };
  if (std::any_of(symbols_.parameters.begin(), symbols_.parameters.end(), shadows)) return nullptr;
  const auto found = symbols_.inlines.find(token_.text);
  if (found == symbols_.inlines.end() || found->second->array) return nullptr;
  const InlineDefinition& definition = *found->second;
  const Node& body = *definition.body;
  const bool text = body.kind == NodeKind::string &&
                    types_[types_.resolve(definition.type)].kind == TypeKind::string;
  if (!text && !body.constant) return nullptr;
  const TypeKind kind = types_[types_.resolve(definition.type)].kind;
  if (!text && kind != TypeKind::integer && kind != TypeKind::enum_) return nullptr;
  Node& node = make(text ? NodeKind::string : NodeKind::integer, place);
  if (text) {
    node.text = body.text;
  } else {
    const Sema sema = outside();
    node.literal = sema.cast_constant(body.value, body.type, definition.type);
    node.declared = definition.type;
  }
  advance();
  return &node;
}

Node& Parser::translation() {
  const Place start = token_.place;
  advance();
  if (!at(Op::lt)) syntax_error();
  advance();
  if (!at_type()) syntax_error();
  const TypeId type = type_name();
  if (!at(Op::gt)) syntax_error();
  advance();
  expect(Tok::lparen);
  Node& value = expression();
  Node& node = make(NodeKind::xlate, start, {&value});
  node.op = Op::xlate;
  node.declared = type;
  node.place.length = token_.place.offset + 1 - start.offset;
  expect(Tok::rparen);
  return postfix(node);
}

// translator output < input name > { member = expression; ... };
void Parser::translator_definition() {
  advance();
  const Place place = token_.place;
  if (!at_type()) syntax_error();
  auto translator = std::make_unique<Translator>();
  translator->output = type_name();
  if (!at(Op::lt)) syntax_error();
  advance();
  if (!at_type()) syntax_error();
  translator->input.type = pointers_to_specifiers(&translator->input.userland);
  if (token_.kind != Tok::identifier) syntax_error();
  translator->input.name = token_.text;
  advance();
  if (!at(Op::gt)) syntax_error();
  advance();
  const Type& output = types_[types_.resolve(translator->output)];
  const std::string& output_name = types_[translator->output].name;
  if (output.kind != TypeKind::struct_ && output.kind != TypeKind::union_) {
    source_.fail("D_XLATE_SOU", place, "translator output type must be a struct or union");
  }
  if (output.size == 0 && output.members.empty()) {
    source_.fail("D_XLATE_SOU", place, fmt::format("incomplete struct/union/enum {}", output_name));
  }
  for (const auto& other : space_.definitions->translators) {
    if (types_.resolve(other->output) != types_.resolve(translator->output) ||
        types_.resolve(other->input.type) != types_.resolve(translator->input.type)) {
      continue;
    }
    source_.fail("D_XLATE_REDECL", place,
                 fmt::format("translator from {} to {} has already been declared",
                             types_[translator->input.type].name, output_name));
  }
  const NameScope scope(symbols_.parameters);
  symbols_.parameters.push_back(&translator->input);
  expect(Tok::lbrace);
  while (token_.kind != Tok::rbrace) translator_member(*translator);
  advance();
  if (token_.kind != Tok::semicolon) syntax_error();
  space_.definitions->translators.push_back(std::move(translator));
  advance();
}

void Parser::translator_member(Translator& translator) {
  if (token_.kind != Tok::identifier && token_.kind != Tok::keyword) syntax_error();
  const Token name = token_;
  advance();
  if (!at(Op::assign)) syntax_error();
  advance();
  Node& value = assignment();
  const Member* member = types_.member(translator.output, name.text);
  if (member == nullptr) {
    source_.fail("D_XLATE_MEMB", name.place,
                 fmt::format("translator member {} is not a member of {}", name.text,
                             types_[translator.output].name));
  }
  translator.attribute = least(translator.attribute, settle(value));
  Node shape;
  shape.type = member->type;
  const Sema sema = outside();
  if (!sema.argument_fits(shape, value)) {
    source_.fail("D_XLATE_INCOMPAT", value.place,
                 fmt::format("translator member {} definition uses incompatible types: \"{}\" = "
                             "\"{}\"",
                             name.text, types_[member->type].name, sema.type_name(value)));
  }
  translator.members.push_back({name.text, &value});
  expect(Tok::semicolon);
}

// provider name { probe name(types) [: (types)]; ... };
void Parser::provider_definition() {
  constexpr std::size_t kLongest = kProviderNameLength - 1;
  advance();
  if (token_.kind != Tok::identifier) syntax_error();
  const Token name = token_;
  advance();
  const auto refuse = [&](std::string message) {
    source_.fail("D_PROV_BADNAME", name.place, std::move(message));
  };
  if (name.text.find('`') != std::string::npos) {
    refuse("provider name may not contain scoping operator: " + name.text);
  }
  if (name.text.size() > kLongest) {
    refuse(fmt::format("provider name may not exceed {} characters: {}", kLongest, name.text));
  }
  if (name.text.back() >= '0' && name.text.back() <= '9') {
    refuse("provider name may not end with a digit: " + name.text);
  }
  ProviderDefinition provider;
  provider.name = name.text;
  expect(Tok::lbrace);
  std::unordered_set<std::string> names;
  while (token_.kind != Tok::rbrace) provider_probe(provider, names);
  advance();
  if (token_.kind != Tok::semicolon) syntax_error();
  std::vector<ProviderDefinition>& known = space_.definitions->providers;
  const auto before = std::find_if(known.begin(), known.end(), [&](const ProviderDefinition& one) {
    return one.name == provider.name;
  });
  if (before == known.end()) {
    known.push_back(std::move(provider));
  } else {
    same_interface(*before, provider, name.place);
  }
  advance();
}

void Parser::provider_probe(ProviderDefinition& provider, std::unordered_set<std::string>& names) {
  constexpr std::size_t kLongest = kNameLength - 1;
  constexpr std::size_t kMostParameters = 255;
  if (!at_keyword("probe")) syntax_error();
  advance();
  if (token_.kind != Tok::identifier) syntax_error();
  const Token name = token_;
  advance();
  if (name.text.find('`') != std::string::npos) {
    source_.fail("D_PROV_BADNAME", name.place,
                 "probe name may not contain scoping operator: " + name.text);
  }
  if (name.text.size() > kLongest) {
    source_.fail("D_PROV_BADNAME", name.place,
                 fmt::format("probe name may not exceed {} characters: {}", kLongest, name.text));
  }
  ProviderDefinition::Probe probe;
  // Two underscores are a hyphen.
  for (std::size_t i = 0; i < name.text.size(); ++i) {
    const bool pair = name.text.compare(i, 2, "__") == 0;
    probe.name += pair ? '-' : name.text[i];
    if (pair) ++i;
  }
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  if (token_.kind == Tok::lparen) prototype(&probe.input, &inputs);
  if (token_.kind == Tok::colon) {
    advance();
    if (token_.kind != Tok::lparen) syntax_error();
    prototype(&probe.output, &outputs);
    probe.has_output = true;
  }
  if (!names.insert(probe.name).second) {
    source_.fail("D_PROV_PRDUP", name.place,
                 fmt::format("probe redeclared: {}:{}", provider.name, probe.name));
  }
  const auto limit = [&](const std::vector<TypeId>& list, std::string_view which) {
    if (list.size() <= kMostParameters) return;
    source_.fail("D_PROV_PRARGLEN", name.place,
                 fmt::format("probe {} {} prototype exceeds {} parameters: {} params used",
                             name.text, which, kMostParameters, list.size()));
  };
  limit(probe.input, "input");
  limit(probe.output, "output");
  // An output is the input of its name, or of its place; another type needs a translator.
  for (std::size_t i = 0; i < probe.output.size(); ++i) {
    const auto named = std::find(inputs.begin(), inputs.end(), outputs[i]);
    const std::size_t from = outputs[i].empty() || named == inputs.end()
                                 ? i
                                 : static_cast<std::size_t>(named - inputs.begin());
    if (from >= probe.input.size()) continue;
    const Sema sema = outside();
    if (types_.resolve(probe.input[from]) == types_.resolve(probe.output[i]) ||
        sema.find_translator(probe.input[from], probe.output[i]) != nullptr) {
      continue;
    }
    source_.fail("D_PROV_PRXLATOR", name.place,
                 fmt::format("translator for {}:{} output argument #{} from {} to {} is not "
                             "defined",
                             provider.name, probe.name, i + 1, types_[probe.input[from]].name,
                             types_[probe.output[i]].name));
  }
  provider.probes.push_back(std::move(probe));
  expect(Tok::semicolon);
}

void Parser::prototype(std::vector<TypeId>* types, std::vector<std::string>* names) {
  advance();
  if (at_keyword("void")) {
    const Place place = token_.place;
    const TypeId type = pointers_to_specifiers();
    if (types_[type].kind != TypeKind::void_) {
      types->push_back(type);
      names->emplace_back();
    } else if (token_.kind != Tok::rparen) {
      source_.fail("D_DECL_PROTO_VOID", place, "void must be sole parameter");
    }
    if (at(Op::comma)) advance();
  }
  while (token_.kind != Tok::rparen) {
    if (!at_type()) syntax_error();
    types->push_back(pointers_to_specifiers());
    names->emplace_back();
    if (token_.kind == Tok::identifier) {
      names->back() = token_.text;
      advance();
    }
    if (at(Op::comma)) {
      advance();
      if (token_.kind == Tok::rparen) syntax_error();
    } else if (token_.kind != Tok::rparen) {
      syntax_error();
    }
  }
  advance();
}

// A provider that is defined again must be the same.
void Parser::same_interface(const ProviderDefinition& before, const ProviderDefinition& now,
                            const Place& place) const {
  const auto refuse = [&](std::string message) {
    source_.fail("D_PROV_INCOMPAT", place, std::move(message));
  };
  const auto interface = [&](const std::string& probe, std::string_view current,
                             std::string_view previous) {
    refuse(
        fmt::format("provider interface mismatch: {}\n\t current: probe {}:{} {}\n\tprevious: "
                    "probe {}:{} {}",
                    now.name, now.name, probe, current, now.name, probe, previous));
  };
  using Probes = std::unordered_map<std::string_view, const ProviderDefinition::Probe*>;
  const auto by_name = [](const ProviderDefinition& provider) {
    Probes probes;
    for (const auto& probe : provider.probes) probes.emplace(probe.name, &probe);
    return probes;
  };
  const Probes old_probes = by_name(before);
  const Probes new_probes = by_name(now);
  const auto same = [&](const std::string& probe, std::string_view which,
                        const std::vector<TypeId>& current, const std::vector<TypeId>& previous) {
    const auto count = [](std::size_t n) { return fmt::format("{} arg{}", n, n == 1 ? "" : "s"); };
    if (current.size() != previous.size()) {
      refuse(fmt::format("probe {}:{} {} prototype mismatch:\n\t current: {}\n\tprevious: {}",
                         now.name, probe, which, count(current.size()), count(previous.size())));
    }
    for (std::size_t i = 0; i < current.size(); ++i) {
      if (types_.resolve(current[i]) == types_.resolve(previous[i])) continue;
      refuse(fmt::format(
          "probe {}:{} {} prototype argument #{} mismatch:\n\t current: "
          "{}\n\tprevious: {}",
          now.name, probe, which, i + 1, types_[current[i]].name, types_[previous[i]].name));
    }
  };
  for (const ProviderDefinition::Probe& probe : now.probes) {
    const auto found = old_probes.find(probe.name);
    if (found == old_probes.end()) interface(probe.name, "defined", "not defined");
    const ProviderDefinition::Probe* old = found->second;
    same(probe.name, "input", probe.input, old->input);
    if (probe.has_output != old->has_output) {
      interface(probe.name,
                probe.has_output ? "has an output prototype" : "has no output prototype",
                old->has_output ? "has an output prototype" : "has no output prototype");
    }
    same(probe.name, "output", probe.output, old->output);
  }
  for (const ProviderDefinition::Probe& probe : before.probes) {
    if (!new_probes.contains(probe.name)) interface(probe.name, "not defined", "defined");
  }
}

}  // namespace dtmalloc::dtrace
