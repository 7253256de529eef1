// SPDX-License-Identifier: BSD-2-Clause
// if and else: a clause that has them becomes several on the same probes, one for each run of
// statements without a branch, whose predicates tell which of them run.
// Counterpart:  dt_sugar.c
// Invariants:   afterwards no statement is an `if_` or a `block`. A condition is set, to 0 or 1,
//               whenever its clause runs, so what an earlier firing left never counts. The clauses
//               are linear in the text.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

class Desugar {
 public:
  Desugar(Ast& ast, TypeId int_type, std::vector<AstClause>& out)
      : ast_(ast), int_type_(int_type), out_(out) {}

  void clause(AstClause clause) {
    place_ = clause.place;
    descriptions_ = std::move(clause.descriptions);
    conditions_ = 0;
    append(nullptr, {&assign(error(), number(0))});
    const std::uint32_t condition =
        clause.predicate == nullptr ? 0 : new_condition(*clause.predicate, 0);
    statements(clause.statements, condition);
  }

  // The clause that notes a fault in a piece, which keeps the later ones from running.
  AstClause error_clause(const Place& place) {
    place_ = place;
    AstClause clause;
    clause.place = place;
    clause.descriptions.push_back({{"dtrace", "", "", "ERROR"}, place});
    clause.statements.push_back(&assign(error(), number(1)));
    return clause;
  }

 private:
  Node& make(NodeKind kind, std::vector<Node*> children = {}, Op op = Op::none) {
    Node& node = ast_.nodes.emplace_back();
    node.kind = kind;
    node.op = op;
    node.place = place_;
    for (const Node* child : children) node.depth = std::max(node.depth, child->depth + 1);
    node.children = std::move(children);
    return node;
  }
  Node& variable(NodeKind kind, std::string name) {
    Node& node = make(kind);
    node.text = std::move(name);
    return node;
  }
  Node& error() { return variable(NodeKind::thread, "%error"); }
  Node& condition(std::uint32_t id) {
    return variable(NodeKind::local, fmt::format("%condition_{}", id));
  }
  Node& number(std::uint64_t value) {
    Node& node = make(NodeKind::integer);
    node.literal = value;
    node.declared = int_type_;
    return node;
  }
  Node& assign(Node& left, Node& right) {
    return make(NodeKind::assign, {&left, &right}, Op::assign);
  }
  Node& negate(Node& operand) { return make(NodeKind::unary, {&operand}, Op::lnot); }
  Node& both(Node& left, Node& right) { return make(NodeKind::binary, {&left, &right}, Op::land); }

  void append(Node* predicate, std::vector<Node*> statements) {
    AstClause clause;
    clause.descriptions = descriptions_;
    clause.predicate = predicate;
    clause.statements = std::move(statements);
    clause.place = place_;
    out_.push_back(std::move(clause));
  }

  // A clause that sets a new condition: `test`, where the condition `outer` (0: none) holds. The
  // conjunction makes it an int whatever the type of the test.
  std::uint32_t new_condition(Node& test, std::uint32_t outer) {
    const std::uint32_t id = ++conditions_;
    Node& value = both(outer == 0 ? number(1) : condition(outer), test);
    value.place = test.place;
    append(&negate(error()), {&assign(condition(id), value)});
    return id;
  }

  // The statements of a block under a condition.
  void statements(const std::vector<Node*>& list, std::uint32_t outer) {
    std::vector<Node*> piece;
    const auto flush = [&] {
      if (piece.empty()) return;
      Node& sound = negate(error());
      append(outer == 0 ? &sound : &both(sound, condition(outer)), std::exchange(piece, {}));
    };
    for (Node* statement : list) {
      if (statement->kind != NodeKind::if_) {
        piece.push_back(statement);
        continue;
      }
      flush();
      branches(*statement, outer);
    }
    flush();
  }

  void branches(const Node& chain, std::uint32_t outer) {
    const std::vector<Node*>& parts = chain.children;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      const std::uint32_t holds = new_condition(*parts[i], outer);
      statements(parts[i + 1]->children, holds);
      if (i + 2 == parts.size()) return;
      outer = new_condition(negate(condition(holds)), outer);
    }
    statements(parts.back()->children, outer);
  }

  Ast& ast_;
  TypeId int_type_;
  std::vector<AstClause>& out_;
  Place place_;
  std::vector<AstDescription> descriptions_;
  std::uint32_t conditions_ = 0;
};

bool has_branch(const AstClause& clause) {
  for (const Node* statement : clause.statements) {
    if (statement->kind == NodeKind::if_) return true;
  }
  return false;
}

}  // namespace

void desugar(Ast& ast, const TypeTable& types, bool* error_clause) {
  std::vector<AstClause> out;
  Desugar stage(ast, types.int_type, out);
  for (AstClause& clause : ast.clauses) {
    if (!has_branch(clause)) {
      out.push_back(std::move(clause));
      continue;
    }
    if (!*error_clause) out.push_back(stage.error_clause(clause.place));
    *error_clause = true;
    stage.clause(std::move(clause));
  }
  ast.clauses = std::move(out);
}

}  // namespace dtmalloc::dtrace
