// SPDX-License-Identifier: BSD-2-Clause
// Trees as D again: what dtrace -d prints.
// Counterpart:  dt_parser.c (dt_printd)
#include <fmt/format.h>

#include "dtrace/lang/ast.hpp"

namespace dtmalloc::dtrace {
namespace {

std::string escaped(std::string_view text) {
  constexpr std::string_view kFrom = "\a\b\f\n\r\t\v\"\\";
  constexpr std::string_view kTo = "abfnrtv\"\\";
  std::string out;
  for (const char c : text) {
    if (const std::size_t at = kFrom.find(c); at != std::string_view::npos) {
      out += '\\';
      out += kTo[at];
    } else if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) >= 0x7f) {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

class Printer {
 public:
  Printer(const TypeTable& types, std::string* out) : types_(types), out_(out) {}
  void print(const Node& node);

 private:
  void print_list(const Node& node, std::size_t first);
  std::string type(const Node& node) const {
    return (node.declared_userland ? "userland " : "") + types_[node.declared].name;
  }
  const TypeTable& types_;
  std::string* out_;
};

void Printer::print_list(const Node& node, std::size_t first) {
  for (std::size_t i = first; i < node.children.size(); ++i) {
    if (i > first) *out_ += ", ";
    print(*node.children[i]);
  }
}

void Printer::print(const Node& node) {
  const auto child = [&](std::size_t i) { print(*node.children[i]); };
  switch (node.kind) {
    case NodeKind::integer:
      *out_ += fmt::format("{:#x}{}", node.literal, types_[node.declared].is_signed ? "" : "u");
      return;
    case NodeKind::string:
      *out_ += fmt::format("\"{}\"", escaped(node.text));
      return;
    case NodeKind::identifier:
      *out_ += node.text;
      return;
    case NodeKind::local:
      *out_ += fmt::format("(this->{})", node.text);
      return;
    case NodeKind::thread:
      *out_ += fmt::format("(self->{})", node.text);
      return;
    case NodeKind::aggregation:
      *out_ += '@';
      if (node.text != "_") *out_ += node.text;
      if (node.children.empty()) return;
      *out_ += '[';
      print_list(node, 0);
      *out_ += ']';
      return;
    case NodeKind::unary:
      *out_ += fmt::format("{}(", op_text(node.op));
      child(0);
      *out_ += ')';
      return;
    case NodeKind::postfix:
      *out_ += '(';
      child(0);
      *out_ += fmt::format("){}", op_text(node.op));
      return;
    case NodeKind::binary:
    case NodeKind::assign:
      *out_ += '(';
      child(0);
      *out_ += fmt::format(" {} ", op_text(node.op));
      child(1);
      *out_ += ')';
      return;
    case NodeKind::conditional:
      *out_ += '(';
      child(0);
      *out_ += " ? ";
      child(1);
      *out_ += " : ";
      child(2);
      *out_ += ')';
      return;
    case NodeKind::call:
      child(0);
      *out_ += '(';
      print_list(node, 1);
      *out_ += ')';
      return;
    case NodeKind::index:
      *out_ += '(';
      child(0);
      *out_ += '[';
      print_list(node, 1);
      *out_ += "])";
      return;
    case NodeKind::member:
      *out_ += '(';
      child(0);
      *out_ += fmt::format("{}{})", op_text(node.op), node.text);
      return;
    case NodeKind::cast:
      *out_ += fmt::format("(({})", type(node));
      child(0);
      *out_ += ')';
      return;
    case NodeKind::xlate:
      *out_ += fmt::format("xlate <{}>(", type(node));
      child(0);
      *out_ += ')';
      return;
    case NodeKind::type_size:
      *out_ += fmt::format("sizeof({})", type(node));
      return;
    case NodeKind::offset_of:
      *out_ += fmt::format("offsetof({}, {})", type(node), node.text);
      return;
    case NodeKind::if_:
    case NodeKind::block:
      return;  // gone by now
  }
}

}  // namespace

std::string print_source(const AstClause& clause, const TypeTable& types) {
  std::string out;
  Printer printer(types, &out);
  for (std::size_t i = 0; i < clause.descriptions.size(); ++i) {
    const ProbeDescription& description = clause.descriptions[i].description;
    out += description.id != kNoProbe ? std::to_string(description.id) : to_string(description);
    out += i + 1 < clause.descriptions.size() ? ",\n" : "\n";
  }
  if (clause.predicate != nullptr) {
    out += '/';
    printer.print(*clause.predicate);
    out += "/\n";
  }
  out += "{\n";
  for (const Node* statement : clause.statements) {
    out += "        ";
    printer.print(*statement);
    out += ";\n";
  }
  return out + "}\n\n";
}

}  // namespace dtmalloc::dtrace
