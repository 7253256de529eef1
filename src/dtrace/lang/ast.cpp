// SPDX-License-Identifier: BSD-2-Clause
// Errors with their place, and dumps of tokens and trees.
#include "dtrace/lang/ast.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtmalloc::dtrace {

SourceText::SourceText(const CompileInput& input)
    : text_(input.text), file_(input.file), library_(input.library), line_starts_(1, 0) {
  for (std::size_t at = text_.find('\n'); at != std::string_view::npos;
       at = text_.find('\n', at + 1)) {
    line_starts_.push_back(at + 1);
  }
}

SourceLocation SourceText::location(const Place& place) const {
  SourceLocation where;
  where.file = file_;
  std::size_t offset = place.offset;
  if (offset >= text_.size()) {
    // The end of the input shows after the last character that is no blank.
    const std::size_t last = text_.find_last_not_of(" \t\r\n\f\v");
    offset = last == std::string_view::npos ? 0 : last + 1;
  }
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  where.line = static_cast<std::uint32_t>(after - line_starts_.begin());
  where.column = static_cast<std::uint32_t>(offset - line_start(where.line)) + 1;
  const std::size_t line_end = std::min(text_.find('\n', offset), text_.size());
  where.length = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(place.length, 1, std::max<std::size_t>(1, line_end - offset)));
  return where;
}

Diagnostic SourceText::diagnostic(std::string_view tag, const Place& place,
                                  std::string message) const {
  Diagnostic diagnostic;
  diagnostic.tag = tag;
  diagnostic.where = location(place);
  const std::size_t start = line_start(diagnostic.where.line);
  const std::size_t end = std::min(text_.find('\n', start), text_.size());
  diagnostic.source_line = text_.substr(start, end - start);
  if (library_) {
    diagnostic.message = fmt::format("\"{}\", line {}: {}", file_, place.line, message);
  } else if (is_file()) {
    diagnostic.message = fmt::format("line {}: {}", place.line, message);
  } else if (place.region == Region::actions) {
    diagnostic.message = "in action list: " + message;
  } else if (place.region == Region::predicate) {
    diagnostic.message = "in predicate: " + message;
  } else {
    diagnostic.message = std::move(message);
  }
  return diagnostic;
}

void SourceText::fail(std::string_view tag, const Place& place, std::string message) const {
  throw CompileError{diagnostic(tag, place, std::move(message))};
}

Op op_of_assignment(Op op) {
  switch (op) {
    case Op::add_assign:
      return Op::add;
    case Op::sub_assign:
      return Op::sub;
    case Op::mul_assign:
      return Op::mul;
    case Op::div_assign:
      return Op::div;
    case Op::mod_assign:
      return Op::mod;
    case Op::and_assign:
      return Op::band;
    case Op::xor_assign:
      return Op::bxor;
    case Op::or_assign:
      return Op::bor;
    case Op::shl_assign:
      return Op::shl;
    case Op::shr_assign:
      return Op::shr;
    default:
      return Op::none;
  }
}

std::string dump(const Token& token) {
  switch (token.kind) {
    case Tok::end:
      return "end";
    case Tok::description:
      return "description " + token.text;
    case Tok::integer:
      return fmt::format("integer {:#x}", token.value);
    case Tok::string:
      return fmt::format("string \"{}\"", token.text);
    case Tok::identifier:
      return "identifier " + token.text;
    case Tok::keyword:
      return "keyword " + token.text;
    case Tok::aggregation:
      return "aggregation @" + token.text;
    case Tok::op:
      return fmt::format("op {}", op_text(token.op));
    case Tok::lparen:
      return "(";
    case Tok::rparen:
      return ")";
    case Tok::lbracket:
      return "[";
    case Tok::rbracket:
      return "]";
    case Tok::lbrace:
      return "{";
    case Tok::rbrace:
      return "}";
    case Tok::semicolon:
      return ";";
    case Tok::colon:
      return ":";
    case Tok::question:
      return "?";
    case Tok::predicate:
      return "predicate /";
    case Tok::end_predicate:
      return "end of predicate /";
    case Tok::other:
      return "no token";
  }
  return {};
}

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      out += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// A name for the node without its children.
std::string head(const Node& node, const TypeTable* types) {
  switch (node.kind) {
    case NodeKind::integer:
      return fmt::format("{:#x}", node.literal);
    case NodeKind::string:
      return quoted(node.text);
    case NodeKind::identifier:
      return node.text;
    case NodeKind::local:
      return "this->" + node.text;
    case NodeKind::thread:
      return "self->" + node.text;
    case NodeKind::aggregation:
      return "@" + node.text;
    case NodeKind::unary:
      return fmt::format("{}_", op_text(node.op));
    case NodeKind::postfix:
      return fmt::format("_{}", op_text(node.op));
    case NodeKind::binary:
    case NodeKind::assign:
      return std::string(op_text(node.op));
    case NodeKind::conditional:
      return "?:";
    case NodeKind::call:
      return "call";
    case NodeKind::index:
      return "[]";
    case NodeKind::member:
      return fmt::format("{}{}", op_text(node.op), node.text);
    case NodeKind::if_:
      return "if";
    case NodeKind::block:
      return "{}";
    case NodeKind::cast:
    case NodeKind::type_size:
    case NodeKind::xlate:
    case NodeKind::offset_of: {
      const std::string type =
          (node.declared_userland ? "userland " : "") +
          (types == nullptr ? std::to_string(node.declared) : (*types)[node.declared].name);
      return fmt::format("{}<{}>{}",
                         node.kind == NodeKind::cast        ? "cast"
                         : node.kind == NodeKind::type_size ? "sizeof"
                         : node.kind == NodeKind::xlate     ? "xlate"
                                                            : "offsetof",
                         type, node.text);
    }
  }
  return {};
}

void dump_node(const Node& node, const TypeTable* types, std::string* out) {
  if (!node.children.empty()) *out += '(';
  *out += head(node, types);
  for (const Node* child : node.children) {
    *out += ' ';
    dump_node(*child, types, out);
  }
  if (!node.children.empty()) *out += ')';
  if (types != nullptr && node.type != kNoType)
    *out += fmt::format(":{}", (*types)[node.type].name);
}

}  // namespace

std::string dump(const Node& node, const TypeTable* types) {
  std::string out;
  dump_node(node, types, &out);
  return out;
}

std::string dump(const AstClause& clause, const TypeTable* types) {
  std::string out;
  for (const AstDescription& description : clause.descriptions) {
    out += out.empty() ? "" : ",\n";
    out += description.description.id != kNoProbe ? std::to_string(description.description.id)
                                                  : to_string(description.description);
  }
  out += '\n';
  if (clause.predicate != nullptr) out += "  / " + dump(*clause.predicate, types) + " /\n";
  for (const Node* statement : clause.statements) out += "  " + dump(*statement, types) + "\n";
  return out;
}

}  // namespace dtmalloc::dtrace
