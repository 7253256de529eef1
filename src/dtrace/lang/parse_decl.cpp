// SPDX-License-Identifier: BSD-2-Clause
// What stands outside clauses: declarations, and the definitions of inlines, translators and
// providers.
// Counterpart:  dt_grammar.y (external_declaration)
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

void Parser::inline_definition() { unsupported(token_.place, "inline definitions are"); }

void Parser::translator_definition() { unsupported(token_.place, "translators are"); }

void Parser::provider_definition() { unsupported(token_.place, "provider definitions are"); }

void Parser::declaration() {
  unsupported(token_.place, at_keyword("typedef") ? "type definitions are" : "declarations are");
}

}  // namespace dtmalloc::dtrace
