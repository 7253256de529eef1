// SPDX-License-Identifier: BSD-2-Clause
// The parser's state: one token ahead.
#pragma once

#include <unordered_set>

#include "dtrace/lang/definitions.hpp"
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
  [[noreturn]] void too_deep(const Place& place, std::string_view what = "expression") const;
  // A type that was made of others, whatever names they have.
  TypeId nested(TypeId type, const Place& place) const {
    if (types_[type].depth > kMaxDepth) too_deep(place, "type");
    return type;
  }
  void expect(Tok kind) {
    if (token_.kind != kind) syntax_error();
    advance();
  }

  // --- declarations
  enum class Storage : std::uint8_t {
    none,
    auto_,
    register_,
    static_,
    extern_,
    typedef_,
    self,
    this_,
  };
  struct Specifiers {
    TypeId type = kNoType;
    Storage storage = Storage::none;
    bool tagged = false;  // a struct, union or enum: a declaration without a name
    bool userland = false;
    // The name of a type after a type: what is declared has it ("int uint_t;").
    std::string early_name;
    Place place, early_place;
  };
  struct Declarator;
  struct Derivation {
    enum Kind : std::uint8_t { pointer, array, tuple, function };
    Kind kind = pointer;
    Place place;
    std::uint32_t count = 0;                  // array
    bool unsized = false;                     // array: "[ ]"
    bool variadic = false;                    // function: "..."
    std::vector<Declarator> parameters = {};  // tuple: the keys; function
  };
  struct Declarator {
    std::string name;
    Place place;
    std::vector<Derivation> derivations;  // from the name outwards
    TypeId type = kNoType;
    TypeId element = kNoType;  // of an associative array, whose type is dynamic
    bool userland = false;     // functions are the kernel's
  };
  enum class Naming : std::uint8_t { required, optional, none };

  // parse_decl.cpp
  void external_declaration();
  void declaration();
  Sema outside() const;  // the checks of what stands outside of every clause
  bool constant(Node& node);
  bool positive_constant(Node& node);
  Declarator declarator(const Specifiers& specifiers, Naming naming);
  void declarator_parts(Naming naming, Declarator& result);
  Derivation array(const Place& open);
  Derivation function(const Place& open);
  bool at_parameter() const;
  void parameters(Derivation& result, Tok closing);
  void check_parameters(const Derivation& list, std::string_view kind) const;
  void check_element(TypeId element, const Derivation& derivation,
                     const Declarator& declarator) const;
  void derive(TypeId type, Declarator& declarator);
  TypeId type_name(bool* userland = nullptr);

  // parse_type.cpp
  bool at_type() const;
  Specifiers declaration_specifiers(bool with_storage);
  TypeId tagged_type();
  void members(TypeId type, TypeKind kind);
  Member member(const Specifiers& specifiers, std::unordered_set<std::string>& names);
  TypeId bit_field(const Declarator& declared, Node& width);
  void enumerators(TypeId type);

  // declare.cpp
  GlobalName known(const std::string& name) const {
    return global_name(name, space_, symbols_, input_.version);
  }
  void declare(const Specifiers& specifiers, const Declarator& declarator);
  void declare_typedef(const Declarator& declarator);
  void declare_extern(const Declarator& declarator);
  void declare_variable(Scope scope, const Declarator& declarator);
  void check_redeclaration(const VariableDesc& before, const VariableDesc& now,
                           const Place& place) const;

  // parse_inline.cpp
  void inline_definition();
  void inline_keys(InlineDefinition& definition, const Token& name);
  void check_inline(const InlineDefinition& definition, const Token& name) const;
  void translator_definition();
  void translator_member(Translator& translator);
  void provider_definition();
  void provider_probe(ProviderDefinition& provider, std::unordered_set<std::string>& names);
  void prototype(std::vector<TypeId>* types, std::vector<std::string>* names);
  void same_interface(const ProviderDefinition& before, const ProviderDefinition& now,
                      const Place& place) const;
  void not_scoped(const Token& name, std::string_view what) const;
  TypeId pointers(TypeId type);
  TypeId pointers_to_specifiers(bool* userland = nullptr);
  Attribute settle(Node& node);

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
  bool at_member_keyword() const;
  Node& size_of();
  Node& offset_of();
  Node* inline_constant(const Place& place);
  Node& translation();  // xlate <type> (value)
  std::vector<Node*> arguments(Tok closing);

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
  std::set<TypeId> defining_;  // structs and unions whose members are being read
};

}  // namespace dtmalloc::dtrace
