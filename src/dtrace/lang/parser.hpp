// SPDX-License-Identifier: BSD-2-Clause
// The parser's state: one token ahead.
#pragma once

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

class Parser {
 public:
  Parser(const CompileInput& input, const SourceText& source, Lexer& lexer, ProgramSpace& space,
         Symbols& symbols, Ast& ast)
      : input_(input),
        source_(source),
        lexer_(lexer),
        space_(space),
        symbols_(symbols),
        types_(*space.types),
        ast_(ast) {}
  void program();

 private:
  // parser.cpp
  void clause();
  AstDescription description();
  void advance() { token_ = lexer_.next(); }
  bool at(Op op) const { return token_.kind == Tok::op && token_.op == op; }
  bool at_keyword(std::string_view text) const {
    return token_.kind == Tok::keyword && token_.text == text;
  }
  Node& make(NodeKind kind, const Place& place, std::vector<Node*> children = {});
  [[noreturn]] void syntax_error() const;
  [[noreturn]] void unsupported(const Place& place, std::string_view what) const;
  [[noreturn]] void too_deep(const Place& place) const;
  void expect(Tok kind) {
    if (token_.kind != kind) syntax_error();
    advance();
  }

  // parse_decl.cpp
  void external_declaration();
  void inline_definition();
  void translator_definition();
  void provider_definition();
  void declaration();

  // parse_stmt.cpp
  std::vector<Node*> statements();  // up to the brace that closes them
  Node* statement();                // null: an empty one
  Node& if_statement();
  Node& body();

  // parse_expr.cpp
  Node& expression();  // with commas
  Node& assignment();
  Node& conditional();
  Node& binary(int lowest);
  Node& unary();
  Node& postfix(Node& start);
  Node& primary();
  Node& size_of();
  Node& offset_of();
  std::vector<Node*> arguments(Tok closing);
  bool at_type() const;
  TypeId type_name();
  TypeId type_specifiers();

  struct Nest {  // counts how deep the recursion is
    explicit Nest(Parser& parser) : parser(parser) {
      if (++parser.nested_ > 2 * kMaxDepth) parser.too_deep(parser.token_.place);
    }
    ~Nest() { --parser.nested_; }
    Parser& parser;
  };

  const CompileInput& input_;
  const SourceText& source_;
  Lexer& lexer_;
  ProgramSpace& space_;
  Symbols& symbols_;
  TypeTable& types_;
  Ast& ast_;
  Token token_;
  std::uint32_t nested_ = 0;
};

}  // namespace dtmalloc::dtrace
