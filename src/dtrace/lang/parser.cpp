// SPDX-License-Identifier: BSD-2-Clause
// The program: clauses and their descriptions.
// Counterpart:  dt_grammar.y
#include "dtrace/lang/parser.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtmalloc::dtrace {

Ast parse(const CompileInput& input, const SourceText& source, Lexer& lexer, ProgramSpace& space,
          Symbols& symbols) {
  Ast ast;
  Parser(input, source, lexer, space, symbols, ast).program();
  return ast;
}

void Parser::syntax_error() const {
  if (token_.kind == Tok::end) {
    source_.fail("D_SYNTAX", token_.place, "syntax error near end of input");
  }
  std::string text(source_.text().substr(token_.place.offset, token_.place.length));
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.empty()) source_.fail("D_SYNTAX", token_.place, "syntax error near end of input");
  source_.fail("D_SYNTAX", token_.place, fmt::format("syntax error near \"{}\"", text));
}

Node& Parser::make(NodeKind kind, const Place& place, std::vector<Node*> children) {
  Node& node = ast_.nodes.emplace_back();
  node.kind = kind;
  node.place = place;
  for (const Node* child : children) node.depth = std::max(node.depth, child->depth + 1);
  node.children = std::move(children);
  if (node.depth > kMaxDepth) too_deep(place);
  return node;
}

void Parser::too_deep(const Place& place, std::string_view what) const {
  source_.fail("D_SIM_NESTING", place,
               fmt::format("{} is nested deeper than {} levels", what, kMaxDepth));
}

void Parser::program() {
  advance();
  while (token_.kind != Tok::end) external_declaration();
}

void Parser::clause() {
  AstClause clause;
  clause.place = token_.place;
  for (;;) {
    if (token_.kind != Tok::description && token_.kind != Tok::integer) syntax_error();
    const Place place = token_.place;
    const bool number = token_.kind == Tok::integer;
    clause.descriptions.push_back(description());
    advance();
    // A description has no blanks: what touches an identifier belongs to it and fits nowhere.
    if (number && token_.kind == Tok::description &&
        token_.place.offset == place.offset + place.length) {
      syntax_error();
    }
    if (token_.kind != Tok::op || token_.op != Op::comma) break;
    advance();
  }
  if (token_.kind == Tok::predicate) {
    advance();
    clause.predicate = &expression();
    if (token_.kind != Tok::end_predicate) syntax_error();
    advance();
    if (token_.kind != Tok::lbrace) {
      if (token_.kind == Tok::end || token_.kind == Tok::description ||
          token_.kind == Tok::integer || token_.kind == Tok::keyword) {
        source_.fail("D_SYNTAX", clause.place,
                     "expected actions { } following probe description and predicate");
      }
      syntax_error();
    }
  }
  if (token_.kind == Tok::lbrace) {
    advance();
    clause.statements = statements();
    advance();
  } else if (source_.is_file()) {
    if (token_.kind != Tok::end && token_.kind != Tok::description && token_.kind != Tok::integer) {
      syntax_error();
    }
    source_.fail("D_SYNTAX", clause.place,
                 "expected predicate and/or actions following probe description");
  }
  ast_.clauses.push_back(std::move(clause));
}

AstDescription Parser::description() {
  std::string text;
  if (token_.kind == Tok::integer) {
    // An octal or hexadecimal id means its value.
    text = std::to_string(token_.value);
  } else if (!lexer_.expand_macros(token_.text, &text)) {
    source_.fail("D_PDESC_INVAL", token_.place,
                 fmt::format("invalid probe description \"{}\": Undefined macro variable in probe "
                             "description",
                             token_.text));
  }
  Result<ProbeDescription> parsed = parse_description(text, input_.context);
  if (!parsed) source_.fail("D_PDESC_INVAL", token_.place, parsed.error().message);
  return {std::move(*parsed), token_.place};
}

}  // namespace dtmalloc::dtrace
