// SPDX-License-Identifier: BSD-2-Clause
// Statements: expressions, if and else.
// Counterpart:  dt_grammar.y
#include "dtrace/lang/parser.hpp"

namespace dtmalloc::dtrace {

std::vector<Node*> Parser::statements() {
  std::vector<Node*> list;
  while (token_.kind != Tok::rbrace) {
    if (Node* next = statement(); next != nullptr) list.push_back(next);
  }
  return list;
}

Node* Parser::statement() {
  const Nest nest(*this);
  if (token_.kind == Tok::semicolon) {
    advance();
    return nullptr;
  }
  if (at_keyword("if")) return &if_statement();
  Node& node = expression();
  if (token_.kind == Tok::semicolon) {
    advance();
  } else if (token_.kind != Tok::rbrace) {
    syntax_error();
  }
  return &node;
}

// A chain of else-ifs is one node, so that its length is no depth.
Node& Parser::if_statement() {
  const Place start = token_.place;
  std::vector<Node*> parts;
  for (;;) {
    advance();
    expect(Tok::lparen);
    parts.push_back(&expression());
    expect(Tok::rparen);
    parts.push_back(&body());
    if (!at_keyword("else")) break;
    advance();
    if (at_keyword("if")) continue;
    parts.push_back(&body());
    break;
  }
  return make(NodeKind::if_, start, std::move(parts));
}

// A statement, or several in braces.
Node& Parser::body() {
  const Place start = token_.place;
  std::vector<Node*> list;
  if (token_.kind == Tok::lbrace) {
    advance();
    list = statements();
    advance();
  } else if (Node* only = statement(); only != nullptr) {
    list.push_back(only);
  }
  return make(NodeKind::block, start, std::move(list));
}

}  // namespace dtmalloc::dtrace
