// SPDX-License-Identifier: BSD-2-Clause
// Tokens, the syntax tree, and the errors of every stage.
// Counterpart:  dt_parser.h
// Invariants:   a tree is never deeper than kMaxDepth, so recursion over it is safe. Sema writes
//               only the fields under "sema" and may run again on the same tree.
#pragma once

#include <cstdint>
#include <deque>
#include <dtmalloc/sys/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "dtrace/lang/lang.hpp"

namespace dtmalloc::dtrace {

inline constexpr std::uint32_t kMaxDepth = 1000;

// Where in a clause a place lies: what a command-line error's position says.
enum class Region : std::uint8_t { none, predicate, actions };
struct Place {
  std::uint32_t offset = 0;
  std::uint32_t length = 1;
  std::uint32_t line = 1;  // as control lines count
  Region region = Region::none;
};

// Thrown inside the compiler only; compile() turns it into a result.
struct CompileError {
  Diagnostic diagnostic;
};

// The text being compiled; makes errors with their place.
class SourceText {
 public:
  explicit SourceText(const CompileInput& input);
  std::string_view text() const { return text_; }
  bool is_file() const { return !file_.empty(); }
  Diagnostic diagnostic(std::string_view tag, const Place& place, std::string message) const;
  [[noreturn]] void fail(std::string_view tag, const Place& place, std::string message) const;
  SourceLocation location(const Place& place) const;

 private:
  // Offset of a line, which counts from 1.
  std::size_t line_start(std::size_t line) const { return line_starts_[line - 1]; }
  std::string_view text_;
  std::string file_;
  bool library_;
  std::vector<std::size_t> line_starts_;
};

enum class Op : std::uint8_t {
#define D_OPERATOR(name, text) name,
#include "dtrace/lang/operators.def"
#undef D_OPERATOR
};
std::string_view op_text(Op op);
// The arithmetic behind a compound assignment; none for "=".
Op op_of_assignment(Op op);

enum class Tok : std::uint8_t {
  end,
  description,  // text: as written
  integer,      // value, type
  string,       // text: the characters
  identifier,   // text
  keyword,      // text
  aggregation,  // text: the name, "_" for @
  op,           // op
  lparen,
  rparen,
  lbracket,
  rbracket,
  lbrace,
  rbrace,
  semicolon,
  colon,
  question,
  predicate,      // the '/' that opens
  end_predicate,  // the '/' that closes
  other,          // no token of D
};

struct Token {
  Tok kind = Tok::end;
  Op op = Op::none;
  Place place;
  std::string text;
  std::uint64_t value = 0;
  TypeId type = kNoType;
};
std::string dump(const Token& token);

enum class NodeKind : std::uint8_t {
  integer,
  string,
  identifier,
  local,        // this->text
  thread,       // self->text
  aggregation,  // @text[children]
  unary,
  postfix,
  binary,
  assign,
  conditional,
  call,       // children[0] is the function
  index,      // children[0] [ children[1..] ]
  member,     // children[0] op text
  cast,       // (declared) children[0]
  type_size,  // sizeof (declared)
  offset_of,  // offsetof (declared, text)
  xlate,      // xlate <declared> (children[0])
  if_,        // statement: condition, block, condition, block ... [block]
  block,      // statement: children
};

struct Binding;
struct InlineDefinition;
struct Translator;

struct Node {
  NodeKind kind = NodeKind::integer;
  Op op = Op::none;
  Place place;
  std::string text;
  std::uint64_t literal = 0;
  TypeId declared = kNoType;       // constants, casts, sizeof
  bool declared_userland = false;  // a cast to a type with that word
  std::vector<Node*> children;
  std::uint32_t depth = 1;

  // --- sema
  TypeId type = kNoType;
  bool constant = false;  // `value` is the whole meaning
  std::uint64_t value = 0;
  bool lvalue = false;
  bool writable = false;       // an lvalue that may be assigned
  bool writes_target = false;  // a pointer through which scratch may be stored
  bool null = false;           // the constant 0 or NULL
  bool userland = false;       // an address of, or an object in, the memory of a process
  std::uint32_t id = 0;        // variable, subroutine, aggregation
  Scope scope = Scope::global;
  std::uint32_t offset = 0;     // member
  bool symbol = false;          // a variable or function of the kernel, at `value`
  std::uint64_t code_size = 0;  // of a function's code; 0: the symbol is none
  std::uint32_t bit = 0;        // member that is a bit-field
  bool external = false;        // a symbol that was declared and is defined nowhere
  // definitions.hpp: what a name stands for; the translator of a translated value, and of its
  // member the expression that is written for it.
  Binding* binding = nullptr;
  InlineDefinition* inlined = nullptr;
  Translator* translator = nullptr;
  const Node* translation = nullptr;
  TypeId native = kNoType;  // args[n] that is translated: the type before
  bool element = false;     // index: of an associative array; id and scope say which
  // Of an array's key that is pushed by reference: its bytes.
  std::uint32_t key_size = 0;
};

struct AstDescription {
  ProbeDescription description;
  Place place;
};

struct AstClause {
  std::vector<AstDescription> descriptions;
  Node* predicate = nullptr;
  std::vector<Node*> statements;
  Place place;
};

struct Ast {
  std::deque<Node> nodes;
  std::vector<AstClause> clauses;
};
std::string dump(const Node& node, const TypeTable* types);  // with types once sema ran
std::string dump(const AstClause& clause, const TypeTable* types);
// As a program that means the same: what dtrace -d prints.
std::string print_source(const AstClause& clause, const TypeTable& types);

}  // namespace dtmalloc::dtrace
