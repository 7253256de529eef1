// SPDX-License-Identifier: BSD-2-Clause
// The stages, in order: Lexer -> parse -> desugar -> Sema -> generate (-> verify -> run in
// dtrace/dif).
// Each is callable alone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "dtrace/lang/ast.hpp"

namespace dtmalloc::dtrace {

// What a #pragma D says of a name. It holds once the whole text is parsed.
struct Pragma {
  enum Kind : std::uint8_t { attributes, provider_attributes, binding, depends_on } kind;
  std::string name;
  Place place;
  Attribute attribute;
  std::string part;  // of a provider; the class of a dependency
  std::uint32_t version = 0;
};

// ---- 1. lexer.cpp, lex_literal.cpp, pragma.cpp: characters -> tokens
// Knows by itself where descriptions, declarations, predicates and statements are, as flex start
// conditions do.
class Lexer {
 public:
  Lexer(const CompileInput& input, const SourceText& source, TypeTable& types);
  Token next();
  // $1 $name inside a description; false: undefined.
  bool expand_macros(std::string_view text, std::string* out);
  const std::set<std::size_t>& referenced_arguments() const { return referenced_; }
  const std::vector<Pragma>& pragmas() const { return pragmas_; }  // but for options

 private:
  enum class State : std::uint8_t { clauses, declaration, expression };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool done(std::size_t ahead = 0) const { return at_ + ahead >= text_.size(); }
  Place here(std::size_t length = 1) const;
  Token token(Tok kind, std::size_t start, Op op = Op::none);
  void skip_blanks();
  void comment();
  Token clause_token();
  Token description();
  bool starts_declaration(std::string_view word, std::size_t end) const;
  Token expression_token();
  Token word();
  Token slash();
  Token number();
  Token string_literal();
  Token character();
  Token macro();
  Token punctuation();
  std::string escapes(std::string_view raw) const;
  TypeId constant_type(std::uint64_t value, bool decimal, std::string_view suffix,
                       const Place& place) const;
  std::uint64_t parse_digits(std::string_view digits, const Place& place, std::string_view tag,
                             std::string_view name) const;
  void control_line();
  void pragma(const std::vector<std::string_view>& words, const Place& place);
  void pragma_attributes(const std::vector<std::string_view>& words, const Place& place);
  void pragma_binding(const std::vector<std::string_view>& words, const Place& place);
  void pragma_depends_on(const std::vector<std::string_view>& words, const Place& place);
  void superfluous(const std::vector<std::string_view>& words, std::size_t wanted,
                   const Place& place) const;

  const CompileInput& input_;
  const SourceText& source_;
  TypeTable& types_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  State state_ = State::clauses;
  Region region_ = Region::none;
  bool line_start_ = true;
  int parens_ = 0, brackets_ = 0, braces_ = 0;
  std::set<std::size_t> referenced_;
  std::vector<Pragma> pragmas_;
};

// Where names are in a ProgramSpace, for a program in this version of the language: what a later
// version brought is not there.
struct Symbols {
  explicit Symbols(const ProgramSpace& space, std::uint32_t version = kDVersion);
  using Names = std::unordered_map<std::string, std::size_t>;
  Names globals, locals, threads, aggregations;
  Names& of(Scope scope) {
    return scope == Scope::global ? globals : scope == Scope::local ? locals : threads;
  }
  std::unordered_map<std::string, InlineDefinition*> inlines;
  std::vector<Binding*> parameters;  // of the definition that is read
};

// What a global name is.
struct GlobalName {
  std::string_view kind;  // "scalar", "array", "enumerator", "function" ...; empty: nothing yet
  std::string_view what;  // "variable", "inline", "built-in", the name of an enum
  bool builtin = false;   // D's own
};
GlobalName global_name(const std::string& name, const ProgramSpace& space, const Symbols& symbols,
                       std::uint32_t version);

// ---- 2. parser.cpp, parse_decl.cpp, parse_type.cpp, declare.cpp, parse_stmt.cpp, parse_expr.cpp:
// tokens -> tree. Declarations take effect as they are read: types in *space.types, variables in
// `space` and `symbols`.
Ast parse(const CompileInput& input, const SourceText& source, Lexer& lexer, ProgramSpace& space,
          Symbols& symbols);

// ---- desugar.cpp: tree -> tree without if and else
// `error_clause`: the consumer's programs have the clause on dtrace:::ERROR already; set when one
// is added.
void desugar(Ast& ast, const TypeTable& types, bool* error_clause);

// ---- 3. sema*.cpp: types of a tree, for one clause on one description
struct ClauseContext {
  ProbeDescription description;
  std::size_t matches = 0;
  CatalogProbe probe;    // the first that matches; id kNoProbe: none
  bool outside = false;  // of every clause: a constant of a declaration
  Catalog* catalog = nullptr;
};

// The functions of D: what a name may be called as.
enum class FunctionKind : std::uint8_t { action, aggregating, subroutine };
struct FunctionInfo {
  std::string_view name;
  FunctionKind kind;
  std::uint32_t id;            // DifSubr, AggFunction, ActionKind
  std::string_view result;     // type name
  std::string_view arguments;  // type names, comma-separated; "?" optional from here; "@" anything
};
const FunctionInfo* find_function(std::string_view name, std::uint32_t version = kDVersion);
std::string_view kind_name(FunctionKind kind);

struct BuiltinVariable {
  std::string_view name;
  std::uint32_t id;
  std::string_view type;
};
const BuiltinVariable* find_builtin(std::string_view name, std::uint32_t version = kDVersion);
inline bool is_builtin_array(std::string_view name) {
  return name == "args" || name == "uregs" || name == "regs";
}
struct NamedConstant {
  std::string_view name;
  std::int32_t value;
};
// NULL and what the library files define: DTRACEFLT_*, errors, signals, address families.
const NamedConstant* find_constant(std::string_view name);
// What a name is that D itself defines ("scalar", "function"); empty: it does not.
std::string_view builtin_kind(std::string_view name, std::uint32_t version = kDVersion);
// The id of one more variable of the scope; too many are refused.
std::uint32_t new_variable_id(const SourceText& source, ProgramSpace& space, Scope scope,
                              const std::string& name, const Place& place);
// How a value of a type is kept and recorded.
ValueDesc describe_type(const TypeTable& types, TypeId id);
// For "did you mean": what that version of the language knows.
std::vector<std::string> all_names(const ProgramSpace& space, std::uint32_t version);

// What a clause has done so far that later actions may not follow.
struct ActionOrder {
  bool committed = false;
  bool speculates = false;
  bool recorded = false;  // outside a speculation
};

class Sema {
 public:
  Sema(const CompileInput& input, const SourceText& source, ProgramSpace& space, Symbols& symbols,
       const ClauseContext& clause)
      : input_(input),
        source_(source),
        space_(space),
        symbols_(symbols),
        types_(*space.types),
        clause_(clause) {}

  void expression(Node& node);  // sema.cpp
  void predicate(Node& node);
  Action statement(Node& node);  // sema_action.cpp; values are generated
  Value value(Node& node);       // of an expression whose types are known
  ValueDesc describe(const Node& node) const;
  std::string type_name(const Node& node) const;
  std::string declared_name(const Node& cast) const;
  // An argument or key of this type may be passed here.
  bool argument_fits(const Node& to, const Node& from) const;
  // --- sema_definition.cpp
  // The expression may be the body of an inline of this type.
  bool may_stand_for(const Node& shape, const Node& body) const;
  Translator* find_translator(TypeId from, TypeId to) const;
  std::uint64_t cast_constant(std::uint64_t value, TypeId from, TypeId to) const;
  // Of an expression whose types are known; refuses what is below the minimum asked for.
  Attribute attribute(const Node& node) const;  // attributes.cpp

 private:
  // sema.cpp
  void unary(Node& node);
  void member(Node& node);
  void index(Node& node);
  void cast(Node& node);
  void conditional(Node& node);
  void size_of(Node& node, TypeId type);
  // attributes.cpp
  Attribute name_attribute(const std::string& name) const;
  Attribute type_attribute(TypeId type) const;
  // sema_definition.cpp
  bool defined_name(Node& node);
  bool inline_element(Node& node);
  void translate(Node& node);
  void translate_argument(Node& node, TypeId translated);
  void translated_member(Node& node);
  // sema_binary.cpp
  void binary(Node& node);
  bool enumerator_operand(Node& node);
  void assign(Node& node);
  void fold(Node& node);
  void set_constant(Node& node, TypeId type, std::uint64_t value);
  // sema_ident.cpp
  void identifier(Node& node);
  void probe_argument(Node& node);
  void call(Node& node);
  [[noreturn]] void unknown_identifier(const Node& node, const std::string& shown);
  void check_arguments(Node& call, const FunctionInfo& info);
  // sema_var.cpp
  const VariableDesc* find_variable(Scope scope, const std::string& name) const;
  void use_variable(Node& node, const VariableDesc& variable) const;
  void scoped_variable(Node& node);
  // An lvalue that is stored to: a variable that is not yet there gets this type.
  void target(Node& node, TypeId type, bool userland = false);
  bool may_define(const Node& node) const;
  bool is_parameter(const std::string& name) const;
  void define_variable(const Node& node, TypeId type, bool userland,
                       const std::vector<Node*>& keys = {});
  // a[keys], when the name in front is an array or may become one. False: it is something else.
  bool array_element(Node& node, TypeId defined, bool userland = false);
  void array_key(Node& key, std::size_t number);
  void check_keys(const Node& node, const VariableDesc& array);
  [[noreturn]] void too_many_keys(const Node& node) const;
  // sema_symbol.cpp
  void symbol(Node& node);
  void registers(Node& node);
  bool is_symbolic(const Node& node) const;  // a call of stack(), sym() ...
  Value symbolic(Node& call);
  std::uint64_t frame_constant(Node& argument, std::uint64_t least, std::string_view tag,
                               const char* text);
  // sema_action.cpp
  Value value_as(Node& node, const ValueDesc& desc);
  Action exit_action(Node& call);
  Action aggregation_action(Node& call, ActionKind kind);
  // sema_control.cpp
  Action control_action(Node& call, const FunctionInfo& info);
  Action freopen_action(Node& call);

 public:
  // Whether an action may follow those before it in its clause.
  void check_order(ActionOrder& before, ActionKind last, const Node& place) const;

 private:
  const AggregationDesc& defined_aggregation(Node& call, std::size_t argument,
                                             const std::string& family);
  // sema_record.cpp
  void expect_arguments(const Node& call, std::size_t least, std::size_t most) const;
  Action trace_action(Node& call, ActionKind kind);
  std::uint32_t recorded_bytes(const Node& size, std::string_view tag, std::string_view function,
                               int number) const;
  Action tracemem_action(Node& call);
  Action printm_action(Node& call);
  // sema_format.cpp
  Action printf_action(Node& call);
  Action printa_action(Node& call);
  static std::string_view conversion_prototype(const Conversion& conversion);
  bool conversion_accepts(const Conversion& conversion, TypeId type) const;
  void check_conversion(const Conversion& conversion, unsigned number, const Node& value,
                        std::string_view what, const Node& place, std::string_view function);
  // sema_agg.cpp
  // The aggregation that an expression is: @a, or in an expression @a = f(). Null: it is none.
  static const Node* aggregation_of(const Node& node);
  static bool aggregates(const Node& node) {
    return node.kind != NodeKind::aggregation && aggregation_of(node) != nullptr;
  }
  const FunctionInfo& aggregating_function(Node& node);
  Action aggregate(Node& node);
  void aggregation_key(Node& key, std::size_t number);
  void lquantize(Node& call, AggregationDesc& desc);
  void llquantize(Node& call, AggregationDesc& desc);
  void match_parameters(const Node& call, const AggregationDesc& first,
                        const AggregationDesc& now) const;
  std::int64_t quantize_constant(const Node& argument, std::string_view tag,
                                 const std::string& text);

  // kinds of types
  const Type& type_of(const Node& node) const { return types_[types_.resolve(node.type)]; }
  bool is_integer(const Node& node) const;
  bool is_arithmetic(const Node& node) const;
  bool is_pointer(const Node& node) const;  // pointers and arrays
  bool is_scalar(const Node& node) const;
  bool is_string(const Node& node) const;
  bool is_string_like(const Node& node) const;  // string, char *, char []
  bool is_dynamic(const Node& node) const;      // no value: an aggregation, what is translated
  bool is_translated(const Node& node) const;
  bool is_action(const Node& node) const;
  // A variable of a thread or an element of an array.
  static bool is_dynamic_variable(const Node& node) {
    return node.kind == NodeKind::thread || (node.kind == NodeKind::index && node.element);
  }
  bool is_void_pointer(const Node& node) const;
  bool leads_on(const Node& node) const;
  bool pointers_agree(const Node& a, const Node& b) const;
  TypeId promote(TypeId a, TypeId b) const { return types_.promote(a, b); }
  TypeId pointee(const Node& node) const;
  std::uint64_t cut(std::uint64_t value, TypeId from, TypeId to) const;
  [[noreturn]] void no_value(const Node& call, FunctionKind kind) const;
  [[noreturn]] void fail(std::string_view tag, const Node& node, std::string message) const {
    source_.fail(tag, node.place, std::move(message));
  }
  [[noreturn]] void incompatible(const Node& node) const;

  const CompileInput& input_;
  const SourceText& source_;
  ProgramSpace& space_;
  Symbols& symbols_;
  TypeTable& types_;
  const ClauseContext& clause_;
};

// ---- lint.cpp: adds what a checked clause hardly means, each message once
struct Lint {
  std::vector<Diagnostic> warnings;
  // The arguments that a branch's condition tests, a bit each; the clauses behind it are next.
  std::map<std::string, std::uint32_t> conditions;
};
void lint(const AstClause& clause, const SourceText& source, const ClauseContext& where,
          Catalog& catalog, Lint& found);

// ---- format.cpp: printf's format string
Format parse_format(const SourceText& source, const Place& place, const std::string& text,
                    std::string_view function);

// ---- 4. codegen.cpp: a typed expression -> DIF, not yet verified
DifObject generate(const SourceText& source, TypeTable& types, const Node& node, ValueDesc result);

}  // namespace dtmalloc::dtrace
