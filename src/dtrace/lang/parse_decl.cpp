// SPDX-License-Identifier: BSD-2-Clause
// What stands outside clauses: declarations, and the definitions of inlines, translators and
// providers; declarators, here and in type names.
// Counterpart:  dt_grammar.y (external_declaration), dt_decl.c
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dtrace/lang/parser.hpp"

namespace dtmalloc::dtrace {

void Parser::external_declaration() {
  if (token_.kind == Tok::description || token_.kind == Tok::integer) return clause();
  if (at_keyword("inline")) return inline_definition();
  if (at_keyword("translator")) return translator_definition();
  if (at_keyword("provider")) return provider_definition();
  if (token_.kind == Tok::keyword || token_.kind == Tok::identifier) return declaration();
  syntax_error();
}

void Parser::declaration() {
  const Specifiers specifiers = declaration_specifiers(true);
  if (token_.kind == Tok::semicolon) {
    if (specifiers.early_name.empty()) {
      if (!specifiers.tagged) {
        source_.fail("D_DECL_USELESS", specifiers.place, "useless declaration");
      }
    } else {
      declare(specifiers, declarator(specifiers, Naming::required));
    }
    advance();
    return;
  }
  for (;;) {
    declare(specifiers, declarator(specifiers, Naming::required));
    if (!at(Op::comma)) break;
    advance();
  }
  expect(Tok::semicolon);
}

Sema Parser::outside() const {
  static const ClauseContext kNowhere = [] {
    ClauseContext context;
    context.outside = true;
    return context;
  }();
  return {input_, source_, space_, symbols_, kNowhere};
}

// A constant of a declaration: false if the expression is none.
bool Parser::constant(Node& node) {
  outside().expression(node);
  if (!node.constant || node.kind == NodeKind::aggregation) return false;
  const TypeKind kind = types_[types_.resolve(node.type)].kind;
  return kind == TypeKind::integer || kind == TypeKind::enum_;
}

bool Parser::positive_constant(Node& node) {
  if (!constant(node)) return false;
  const bool is_signed = types_[types_.resolve(node.type)].is_signed;
  return is_signed ? static_cast<std::int64_t>(node.value) > 0 : node.value != 0;
}

Parser::Declarator Parser::declarator(const Specifiers& specifiers, Naming naming) {
  Declarator result;
  result.place = token_.place;
  if (!specifiers.early_name.empty()) {
    if (token_.kind == Tok::identifier || naming == Naming::none) {
      source_.fail("D_DECL_IDENT", token_.place,
                   "old-style declaration or incorrect type specified");
    }
    result.name = specifiers.early_name;
    result.place = specifiers.early_place;
  } else {
    declarator_parts(naming, result);
  }
  derive(specifiers.type, result);
  result.userland =
      specifiers.userland &&
      std::none_of(result.derivations.begin(), result.derivations.end(),
                   [](const Derivation& part) { return part.kind == Derivation::function; });
  return result;
}

// The derivations in the order in which they apply to the name.
void Parser::declarator_parts(Naming naming, Declarator& result) {
  const Nest nest(*this);
  std::vector<Derivation> pointers;
  while (at(Op::mul)) {
    pointers.push_back({Derivation::pointer, token_.place});
    advance();
    while (at_keyword("const") || at_keyword("volatile") || at_keyword("restrict")) advance();
  }
  bool group = false;
  if (token_.kind == Tok::lparen) {
    if (naming == Naming::required) {
      advance();
      group = true;
    } else {
      // A parenthesis without a name may be that of a function's parameters.
      const Place open = token_.place;
      advance();
      group = at(Op::mul) || token_.kind == Tok::lparen || token_.kind == Tok::lbracket ||
              (token_.kind == Tok::identifier && naming == Naming::optional && !at_type());
      if (!group) result.derivations.push_back(function(open));
    }
  }
  if (group) {
    declarator_parts(naming, result);
    expect(Tok::rparen);
  } else if (token_.kind == Tok::identifier && naming != Naming::none &&
             result.derivations.empty()) {
    result.name = token_.text;
    result.place = token_.place;
    advance();
  } else if (naming == Naming::required) {
    syntax_error();
  }
  for (;;) {
    const Place open = token_.place;
    if (token_.kind == Tok::lbracket) {
      advance();
      result.derivations.push_back(array(open));
    } else if (token_.kind == Tok::lparen) {
      advance();
      result.derivations.push_back(function(open));
    } else {
      break;
    }
  }
  result.derivations.insert(result.derivations.end(), pointers.begin(), pointers.end());
  if (result.derivations.size() > kMaxDepth) too_deep(result.place);
}

// After the bracket that opens: a dimension, a tuple of key types, or nothing.
Parser::Derivation Parser::array(const Place& open) {
  Derivation result{Derivation::array, open};
  if (token_.kind == Tok::rbracket) {
    result.unsized = true;
  } else if (at_parameter()) {
    result.kind = Derivation::tuple;
    parameters(result, Tok::rbracket);
    check_parameters(result, "array");
  } else {
    Node& dimension = conditional();
    if (!positive_constant(dimension)) {
      source_.fail("D_DECL_ARRSUB", dimension.place,
                   "positive integral constant expression or tuple signature expected as array "
                   "declaration subscript");
    }
    if (dimension.value > std::numeric_limits<std::uint32_t>::max()) {
      source_.fail("D_DECL_ARRBIG", dimension.place, "array dimension too big");
    }
    result.count = static_cast<std::uint32_t>(dimension.value);
  }
  result.place.length = token_.place.offset + token_.place.length - open.offset;
  expect(Tok::rbracket);
  return result;
}

Parser::Derivation Parser::function(const Place& open) {
  Derivation result{Derivation::function, open};
  parameters(result, Tok::rparen);
  check_parameters(result, "function");
  result.place.length = token_.place.offset + token_.place.length - open.offset;
  expect(Tok::rparen);
  return result;
}

bool Parser::at_parameter() const {
  if (at_type() || at(Op::dot)) return true;
  for (const std::string_view word :
       {"auto", "register", "static", "extern", "typedef", "self", "this", "restrict"}) {
    if (at_keyword(word)) return true;
  }
  return false;
}

void Parser::parameters(Derivation& result, Tok closing) {
  const Nest nest(*this);
  if (token_.kind == closing) return;
  for (;;) {
    if (at(Op::dot)) {
      for (int i = 0; i < 3; ++i) {
        if (!at(Op::dot)) syntax_error();
        advance();
      }
      result.variadic = true;
      return;
    }
    if (!at_parameter()) syntax_error();
    const Specifiers specifiers = declaration_specifiers(true);
    if (specifiers.storage != Storage::none && specifiers.storage != Storage::register_) {
      source_.fail("D_DECL_PARMCLASS", specifiers.place,
                   "inappropriate storage class for function or associative array parameter");
    }
    result.parameters.push_back(declarator(specifiers, Naming::optional));
    if (!at(Op::comma)) return;
    advance();
  }
}

void Parser::check_parameters(const Derivation& list, std::string_view kind) const {
  const bool array = list.kind == Derivation::tuple;
  if (list.variadic && array) {
    source_.fail("D_DECL_PROTO_VARARGS", list.place,
                 fmt::format("{} prototype may not use a variable-length argument list", kind));
  }
  bool has_void = false;
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < list.parameters.size(); ++i) {
    const Declarator& parameter = list.parameters[i];
    const Type& type = types_[types_.resolve(parameter.type)];
    const bool is_void = type.kind == TypeKind::void_;
    has_void |= is_void;
    if (type.kind == TypeKind::dynamic || (is_void && array)) {
      source_.fail("D_DECL_PROTO_TYPE", parameter.place,
                   fmt::format("{} prototype may not use parameter of type {}: {}, parameter #{}",
                               kind, types_[parameter.type].name,
                               parameter.name.empty() ? "(anonymous)" : parameter.name, i + 1));
    }
    if (is_void && !parameter.name.empty()) {
      source_.fail("D_DECL_PROTO_NAME", parameter.place,
                   fmt::format("void parameter may not have a name: {}", parameter.name));
    }
    if (!parameter.name.empty() && !names.insert(parameter.name).second) {
      source_.fail("D_DECL_PROTO_FORM", parameter.place,
                   fmt::format("parameter is already declared in {} prototype: {}, parameter #{}",
                               kind, parameter.name, i + 1));
    }
  }
  if (has_void && (list.parameters.size() > 1 || list.variadic)) {
    source_.fail("D_DECL_PROTO_VOID", list.place, "void must be sole parameter");
  }
}

// What an array or a tuple is made of must have a size.
void Parser::check_element(TypeId element, const Derivation& derivation,
                           const Declarator& declarator) const {
  const Type& type = types_[types_.resolve(element)];
  switch (type.kind) {
    case TypeKind::dynamic:
      source_.fail("D_DECL_DYNOBJ", derivation.place, "cannot declare array of associative arrays");
    case TypeKind::void_:
      source_.fail("D_DECL_VOIDOBJ", derivation.place, "cannot declare array of void");
    case TypeKind::function:
      source_.fail("D_DECL_COMBO", derivation.place, "invalid type combination");
    case TypeKind::struct_:
    case TypeKind::union_:
    case TypeKind::enum_:
      if (type.size != 0) return;
      source_.fail("D_DECL_INCOMPLETE", declarator.place,
                   fmt::format("incomplete struct/union/enum {}: {}", types_[element].name,
                               declarator.name.empty() ? "(anon)" : declarator.name));
    default:
      return;
  }
}

// The type of the name: the derivations apply from the last to the first. An associative array is
// of dynamic type; what its elements are is kept beside.
void Parser::derive(TypeId type, Declarator& declarator) {
  const std::vector<Derivation>& list = declarator.derivations;
  for (std::size_t i = list.size(); i-- > 0;) {
    const Derivation& derivation = list[i];
    switch (derivation.kind) {
      case Derivation::pointer:
      case Derivation::function: {
        // An associative array has no type that could be pointed to: to libdtrace it is void.
        if (types_[types_.resolve(type)].kind == TypeKind::dynamic) type = types_.void_type;
        if (derivation.kind == Derivation::pointer) {
          type = nested(types_.pointer_to(type), derivation.place);
          break;
        }
        std::vector<TypeId> parameters;
        for (const Declarator& parameter : derivation.parameters) {
          parameters.push_back(parameter.type);
        }
        type = nested(types_.function_of(type, std::move(parameters), derivation.variadic),
                      derivation.place);
        break;
      }
      case Derivation::tuple:
        check_element(type, derivation, declarator);
        declarator.element = type;
        type = types_.dynamic_type;
        break;
      case Derivation::array: {
        check_element(type, derivation, declarator);
        const std::uint64_t size = types_[types_.resolve(type)].size;
        constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        if (derivation.count > kMost / std::max<std::uint64_t>(size, 1)) {
          source_.fail("D_DECL_ARRBIG", derivation.place, "array dimension too big");
        }
        type = nested(types_.array_of(type, derivation.count), derivation.place);
        break;
      }
    }
  }
  declarator.type = type;
}

TypeId Parser::type_name(bool* userland) {
  const Specifiers specifiers = declaration_specifiers(false);
  const Declarator named = declarator(specifiers, Naming::none);
  if (userland != nullptr) *userland = named.userland;
  return named.type;
}

}  // namespace dtmalloc::dtrace
