// SPDX-License-Identifier: BSD-2-Clause
// What a program says that is allowed and hardly meant: over the typed tree, after the checks.
// Differs:      dtrace(1) has none of this; `dtmalloc check` prints it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::array<std::string_view, 9> kDestructive = {
    "system", "freopen", "raise", "stop", "chill", "panic", "breakpoint", "copyout", "copyoutstr"};

constexpr int kPassed = 5;  // arguments that a probe passes

class Linter {
 public:
  Linter(const SourceText& source, const ClauseContext& where, Catalog& catalog, Lint& found)
      : source_(source), where_(where), catalog_(catalog), found_(found) {}

  void clause(const AstClause& clause) {
    if (clause.predicate != nullptr) test(*clause.predicate);
    for (const Node* statement : clause.statements) {
      if (is_condition(*statement)) {
        test(*statement->children[1]);
        found_.conditions[statement->children[0]->text] = tested_;
      } else {
        visit(*statement);
      }
    }
    for (const ArgumentRemark& remark : remarks()) {
      if (!remark.unless_tested || tests(remark.index)) continue;
      const auto used = used_.find(remark.index);
      const Place& place = used != used_.end() ? used->second : clause.place;
      if (used != used_.end() || counts_) warn("LINT_UNTESTED", place, remark.what, remark.instead);
    }
  }

 private:
  // That of a branch (desugar.cpp).
  static bool is_condition(const Node& statement) {
    return statement.kind == NodeKind::assign && statement.children[0]->kind == NodeKind::local &&
           statement.children[0]->text.starts_with("%condition_");
  }
  void test(const Node& node) {
    in_test_ = true;
    visit(node);
    in_test_ = false;
  }
  bool tests(int index) const { return index < 32 && (tested_ >> index & 1) != 0; }

  void warn(std::string tag, const Place& place, std::string message, std::string instead) {
    for (const Diagnostic& known : found_.warnings)
      if (known.message == message) return;  // once for a program
    Diagnostic warning = source_.diagnostic(tag, place, "");
    warning.message = std::move(message);
    warning.expected = std::move(instead);
    found_.warnings.push_back(std::move(warning));
  }

  const std::vector<ArgumentRemark>& remarks() {
    if (!asked_) remarks_ = catalog_.argument_remarks(where_.probe.id);
    asked_ = true;
    return remarks_;
  }

  // The number of `argN` or `args[N]`; -1: neither.
  static int argument_of(const Node& node) {
    if (node.kind == NodeKind::identifier && node.text.size() == 4 &&
        node.text.starts_with("arg") && node.text[3] >= '0' && node.text[3] <= '9')
      return node.text[3] - '0';
    if (node.kind == NodeKind::index && node.children.size() == 2 &&
        node.children[0]->kind == NodeKind::identifier && node.children[0]->text == "args" &&
        node.children[1]->constant)
      return static_cast<int>(node.children[1]->value);
    return -1;
  }

  void visit(const Node& node) {
    if (const int index = argument_of(node); index >= 0) argument(node, index);
    if (node.kind == NodeKind::local && in_test_) {
      const auto condition = found_.conditions.find(node.text);
      if (condition != found_.conditions.end()) tested_ |= condition->second;
    }
    if (node.kind == NodeKind::call && !node.children.empty()) call(node);
    if (node.kind == NodeKind::unary && node.op == Op::stringof_ && !node.children.empty() &&
        argument_of(*node.children[0]) >= 0)
      name_of_structure(node, *node.children[0]);
    for (const Node* child : node.children) visit(*child);
  }

  void argument(const Node& node, int index) {
    if (!in_test_)
      used_.emplace(index, node.place);
    else if (index < 32)
      tested_ |= 1U << index;
    if (where_.probe.id == kNoProbe) return;
    const std::size_t typed = where_.probe.arguments.size();
    if (index >= kPassed && typed > 0 && static_cast<std::size_t>(index) >= typed) {
      warn("LINT_ARGUMENT", node.place,
           fmt::format("{} passes {} arguments: {} is whatever the stack holds there",
                       to_string(where_.probe.description), typed,
                       node.kind == NodeKind::index ? "this" : node.text),
           fmt::format("arg0 to arg{}", typed - 1));
    }
    for (const ArgumentRemark& remark : remarks())
      if (remark.index == index && !remark.unless_tested)
        warn("LINT_ARGUMENT", node.place, remark.what, remark.instead);
  }

  // stringof args[0]: the first bytes of a structure as text.
  void name_of_structure(const Node& node, const Node& argument) {
    const auto index = static_cast<std::size_t>(argument_of(argument));
    if (index >= where_.probe.arguments.size()) return;
    const std::string& type = where_.probe.arguments[index];
    if (!type.starts_with("struct ")) return;
    warn("LINT_STRINGOF", node.place,
         "this takes the structure's own bytes for text, not the name in it",
         type == "struct malloc_type *" ? "stringof(args[0]->ks_shortdesc), or probefunc"
                                        : "stringof of a member that points at text");
  }

  void call(const Node& node) {
    const std::string& name = node.children[0]->text;
    if (name == "count" || name == "quantize" || name == "avg" || name == "min") counts_ = true;
    if (std::find(kDestructive.begin(), kDestructive.end(), name) != kDestructive.end())
      warn("LINT_DESTRUCTIVE", node.place,
           name + "() is destructive: without -w a kernel refuses the program",
           "-w, or #pragma D option destructive");
  }

  const SourceText& source_;
  const ClauseContext& where_;
  Catalog& catalog_;
  Lint& found_;
  std::vector<ArgumentRemark> remarks_;
  bool asked_ = false, in_test_ = false, counts_ = false;
  std::uint32_t tested_ = 0;   // by the predicate and by the conditions that it names
  std::map<int, Place> used_;  // outside of these, at first
};

}  // namespace

void lint(const AstClause& clause, const SourceText& source, const ClauseContext& where,
          Catalog& catalog, Lint& found) {
  Linter(source, where, catalog, found).clause(clause);
}

}  // namespace dtmalloc::dtrace
