// SPDX-License-Identifier: BSD-2-Clause
// Expressions by precedence.
// Counterpart:  dt_grammar.y
#include <fmt/format.h>

#include <algorithm>

#include "dtrace/lang/parser.hpp"

namespace dtmalloc::dtrace {
namespace {

// 1 binds loosest; 0: no binary operator.
int precedence(Op op) {
  switch (op) {
    case Op::lor:
      return 1;
    case Op::lxor:
      return 2;
    case Op::land:
      return 3;
    case Op::bor:
      return 4;
    case Op::bxor:
      return 5;
    case Op::band:
      return 6;
    case Op::eq:
    case Op::ne:
      return 7;
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      return 8;
    case Op::shl:
    case Op::shr:
      return 9;
    case Op::add:
    case Op::sub:
      return 10;
    case Op::mul:
    case Op::div:
    case Op::mod:
      return 11;
    default:
      return 0;
  }
}

Op unary_op(Op op) {
  switch (op) {
    case Op::add:
      return Op::pos;
    case Op::sub:
      return Op::neg;
    case Op::mul:
      return Op::deref;
    case Op::band:
      return Op::addrof;
    case Op::lnot:
    case Op::bnot:
    case Op::inc:
    case Op::dec:
      return op;
    default:
      return Op::none;
  }
}

bool is_assignment(Op op) { return op >= Op::assign && op <= Op::shr_assign; }

Place span(const Node& first, const Place& last) {
  Place place = first.place;
  place.length = last.offset + last.length - place.offset;
  return place;
}

}  // namespace

Node& Parser::expression() {
  const Nest nest(*this);
  Node* left = &assignment();
  while (at(Op::comma)) {
    advance();
    Node& right = assignment();
    Node& node = make(NodeKind::binary, span(*left, right.place), {left, &right});
    node.op = Op::comma;
    left = &node;
  }
  return *left;
}

Node& Parser::assignment() {
  const Nest nest(*this);
  Node& left = conditional();
  if (token_.kind != Tok::op || !is_assignment(token_.op)) return left;
  const Op op = token_.op;
  advance();
  Node& right = assignment();
  Node& node = make(NodeKind::assign, span(left, right.place), {&left, &right});
  node.op = op;
  return node;
}

Node& Parser::conditional() {
  Node& test = binary(1);
  if (token_.kind != Tok::question) return test;
  const Nest nest(*this);
  advance();
  Node& yes = expression();
  expect(Tok::colon);
  Node& no = conditional();
  Node& node = make(NodeKind::conditional, span(test, no.place), {&test, &yes, &no});
  node.op = Op::question;
  return node;
}

Node& Parser::binary(int lowest) {
  const Nest nest(*this);
  Node* left = &unary();
  for (;;) {
    const Op op = token_.kind == Tok::op ? token_.op : Op::none;
    const int level = precedence(op);
    if (level < lowest || level == 0) return *left;
    advance();
    Node& right = binary(level + 1);
    Node& node = make(NodeKind::binary, span(*left, right.place), {left, &right});
    node.op = op;
    left = &node;
  }
}

Node& Parser::unary() {
  const Nest nest(*this);
  const Place start = token_.place;
  const auto finish = [&](Op op, Node& operand) -> Node& {
    Node& node = make(NodeKind::unary, start, {&operand});
    node.op = op;
    node.place.length = operand.place.offset + operand.place.length - start.offset;
    return node;
  };
  if (token_.kind == Tok::op && unary_op(token_.op) != Op::none) {
    const Op op = unary_op(token_.op);
    advance();
    return finish(op, unary());
  }
  if (at_keyword("stringof")) {
    advance();
    return finish(Op::stringof_, unary());
  }
  if (at_keyword("sizeof")) return size_of();
  if (at_keyword("offsetof")) return offset_of();
  if (at_keyword("xlate")) return translation();
  if (token_.kind != Tok::lparen) return postfix(primary());
  advance();
  if (!at_type()) {
    Node& inner = expression();
    inner.place.length = token_.place.offset + 1 - inner.place.offset;
    expect(Tok::rparen);
    return postfix(inner);
  }
  bool userland = false;
  const TypeId type = type_name(&userland);
  expect(Tok::rparen);
  Node& operand = unary();
  Node& node = make(NodeKind::cast, start, {&operand});
  node.declared = type;
  node.declared_userland = userland;
  node.place.length = operand.place.offset + operand.place.length - start.offset;
  return node;
}

Node& Parser::size_of() {
  const Place start = token_.place;
  advance();
  if (token_.kind == Tok::lparen) {
    advance();
    if (at_type()) {
      Node& node = make(NodeKind::type_size, start);
      node.declared = type_name();
      expect(Tok::rparen);
      return node;
    }
    Node& inner = expression();
    expect(Tok::rparen);
    Node& node = make(NodeKind::unary, start, {&postfix(inner)});
    node.op = Op::sizeof_;
    return node;
  }
  Node& node = make(NodeKind::unary, start, {&unary()});
  node.op = Op::sizeof_;
  return node;
}

Node& Parser::offset_of() {
  const Place start = token_.place;
  advance();
  expect(Tok::lparen);
  if (!at_type()) syntax_error();
  const TypeId type = type_name();
  if (!at(Op::comma)) syntax_error();
  advance();
  if (token_.kind != Tok::identifier && token_.kind != Tok::keyword) syntax_error();
  Node& node = make(NodeKind::offset_of, start);
  node.declared = type;
  node.text = token_.text;
  advance();
  expect(Tok::rparen);
  return node;
}

std::vector<Node*> Parser::arguments(Tok closing) {
  std::vector<Node*> list;
  if (token_.kind != closing) {
    list.push_back(&assignment());
    while (at(Op::comma)) {
      advance();
      list.push_back(&assignment());
    }
  }
  return list;
}

Node& Parser::postfix(Node& start) {
  Node* node = &start;
  for (;;) {
    const Place place = token_.place;
    if (token_.kind == Tok::lparen) {
      advance();
      std::vector<Node*> children = arguments(Tok::rparen);
      children.insert(children.begin(), node);
      node = &make(NodeKind::call, span(*node, token_.place), std::move(children));
      expect(Tok::rparen);
    } else if (token_.kind == Tok::lbracket) {
      advance();
      std::vector<Node*> children = arguments(Tok::rbracket);
      if (children.empty()) syntax_error();
      children.insert(children.begin(), node);
      node = &make(NodeKind::index, span(*node, token_.place), std::move(children));
      node->op = Op::index;
      expect(Tok::rbracket);
    } else if (at(Op::dot) || at(Op::arrow)) {
      const Op op = token_.op;
      advance();
      if (token_.kind != Tok::identifier && !at_member_keyword()) syntax_error();
      Node& member = make(NodeKind::member, span(*node, token_.place), {node});
      member.op = op;
      member.text = token_.text;
      node = &member;
      advance();
    } else if (at(Op::inc) || at(Op::dec)) {
      Node& step = make(NodeKind::postfix, span(*node, place), {node});
      step.op = token_.op;
      node = &step;
      advance();
    } else {
      return *node;
    }
  }
}

// The keywords that a member may be named by.
bool Parser::at_member_keyword() const {
  for (const std::string_view word :
       {"probe", "provider", "self", "string", "stringof", "userland", "xlate", "translator"}) {
    if (at_keyword(word)) return true;
  }
  return false;
}

Node& Parser::primary() {
  const Place place = token_.place;
  switch (token_.kind) {
    case Tok::integer: {
      Node& node = make(NodeKind::integer, place);
      node.literal = token_.value;
      node.declared = token_.type;
      advance();
      return node;
    }
    case Tok::string: {
      Node& node = make(NodeKind::string, place);
      node.text = token_.text;
      advance();
      return node;
    }
    case Tok::identifier: {
      if (Node* constant = inline_constant(place); constant != nullptr) return *constant;
      Node& node = make(NodeKind::identifier, place);
      node.text = token_.text;
      // What is written in the place of the name counts as nested.
      if (const auto found = symbols_.inlines.find(node.text); found != symbols_.inlines.end()) {
        node.depth = found->second->body->depth + 1;
        if (node.depth > kMaxDepth) too_deep(place);
      }
      advance();
      return node;
    }
    case Tok::aggregation: {
      Node& node = make(NodeKind::aggregation, place);
      node.text = token_.text;
      advance();
      if (token_.kind != Tok::lbracket) return node;
      advance();
      std::vector<Node*> keys = arguments(Tok::rbracket);
      if (keys.empty()) syntax_error();
      for (const Node* key : keys) node.depth = std::max(node.depth, key->depth + 1);
      if (node.depth > kMaxDepth) too_deep(place);
      node.children = std::move(keys);
      node.place = span(node, token_.place);
      expect(Tok::rbracket);
      if (token_.kind == Tok::lbracket) {
        source_.fail("D_AGG_MDIM", span(node, token_.place),
                     fmt::format("improper attempt to reference @{} as a multi-dimensional array",
                                 node.text));
      }
      return node;
    }
    case Tok::keyword:
      if (token_.text == "this" || token_.text == "self") {
        const bool local = token_.text == "this";
        advance();
        if (!at(Op::arrow)) syntax_error();
        advance();
        if (token_.kind != Tok::identifier) syntax_error();
        Node& node = make(local ? NodeKind::local : NodeKind::thread, place);
        node.text = token_.text;
        node.place = span(node, token_.place);
        advance();
        return node;
      }
      syntax_error();
    default:
      syntax_error();
  }
}

}  // namespace dtmalloc::dtrace
