// SPDX-License-Identifier: BSD-2-Clause
// Names of aggregating functions; what the code of a program needs.
#include "dtrace/dif/program.hpp"

#include <algorithm>
#include <array>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {

std::string_view to_string(AggFunction function) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "count", "sum", "min", "max", "avg", "stddev", "quantize", "lquantize", "llquantize"};
  return kNames[static_cast<std::size_t>(function)];
}

namespace {

bool reaches_large(const VerifiedDif& dif, const VariableList& variables) {
  const std::vector<std::uint32_t>& text = dif.object().text;
  return std::any_of(text.begin(), text.end(), [&](std::uint32_t instruction) {
    const DifWord word{instruction};
    const auto op = static_cast<DifOp>(word.op());
    const bool global = op == DifOp::ldgs || op == DifOp::stgs;
    if (!global && op != DifOp::ldls && op != DifOp::stls) return false;
    const VariableDesc* variable =
        variables.find(global ? Scope::global : Scope::local, word.index());
    return variable != nullptr && variable->value.by_ref && !variable->value.is_string &&
           variable->value.size > kStatvarMax;
  });
}

}  // namespace

bool uses_large_variable(const Program& program, const VariableList& variables) {
  const auto large = [&](const Value& value) { return reaches_large(value.dif, variables); };
  for (const Clause& clause : program.clauses) {
    if (clause.predicate && reaches_large(*clause.predicate, variables)) return true;
    for (const Action& action : clause.actions) {
      if (std::any_of(action.values.begin(), action.values.end(), large) ||
          (action.argument && large(*action.argument)) ||
          (action.increment && large(*action.increment))) {
        return true;
      }
    }
  }
  return false;
}

bool is_destructive(ActionKind kind) {
  switch (kind) {
    case ActionKind::system:
    case ActionKind::freopen:
    case ActionKind::raise:
    case ActionKind::stop:
    case ActionKind::chill:
    case ActionKind::panic:
    case ActionKind::breakpoint:
      return true;
    default:
      return false;
  }
}

}  // namespace dtmalloc::dtrace
