// SPDX-License-Identifier: BSD-2-Clause
// Statements: expressions for their effects, and the actions other than printf and aggregations.
// Counterpart:  dt_cc.c (dt_compile_fun)
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

Value Sema::value(Node& node) {
  const ValueDesc desc = describe(node);
  return value_as(node, desc);
}

Value Sema::value_as(Node& node, const ValueDesc& desc) {
  DifObject object = generate(source_, types_, node, desc);
  // A table of its own for every object, as in the kernel; "" needs none: the first is empty.
  if (object.strings.size() > 1) {
    object.strings_address = kStringTableBase + space_.strings.size();
    space_.strings += object.strings;
  }
  Result<VerifiedDif, std::string> verified = verify(std::move(object), space_.variables);
  DTM_CHECK(verified, verified.error().c_str());
  return {std::move(*verified), desc};
}

Action Sema::statement(Node& node) {
  if (aggregates(node)) return aggregate(node);
  if (node.kind == NodeKind::aggregation) {
    fail("D_AGG_NULL", node, fmt::format("expression has null effect: @{}", node.text));
  }
  if (is_action(node)) {
    const FunctionInfo& info = *find_function(node.children[0]->text, input_.version);
    switch (static_cast<ActionKind>(info.id)) {
      case ActionKind::trace:
      case ActionKind::print:
        return trace_action(node, static_cast<ActionKind>(info.id));
      case ActionKind::tracemem:
        return tracemem_action(node);
      case ActionKind::printm:
        return printm_action(node);
      case ActionKind::printf:
        return printf_action(node);
      case ActionKind::printa:
        return printa_action(node);
      case ActionKind::exit:
        return exit_action(node);
      case ActionKind::stack:
      case ActionKind::ustack:
      case ActionKind::symbol: {
        Action action;
        action.kind = ActionKind::trace;
        action.values.push_back(symbolic(node));
        return action;
      }
      case ActionKind::speculate:
      case ActionKind::commit:
      case ActionKind::discard:
      case ActionKind::setopt:
      case ActionKind::ftruncate:
      case ActionKind::raise:
      case ActionKind::stop:
      case ActionKind::chill:
      case ActionKind::panic:
      case ActionKind::breakpoint:
        return control_action(node, info);
      case ActionKind::freopen:
        return freopen_action(node);
      case ActionKind::system: {
        Action action = printf_action(node);
        action.kind = ActionKind::system;
        return action;
      }
      default:
        return aggregation_action(node, static_cast<ActionKind>(info.id));
    }
  }
  expression(node);
  if (is_translated(node)) {
    fail("D_CG_DYN", node, "expression cannot evaluate to result of a translated pointer");
  }
  Action action;
  ValueDesc nothing = describe(node);
  nothing.size = nothing.by_ref ? nothing.size : 0;
  action.values.push_back(value_as(node, nothing));
  return action;
}

Action Sema::exit_action(Node& call) {
  const std::size_t passed = call.children.size() - 1;
  if (passed != 1) {
    fail("D_PROTO_LEN", call,
         fmt::format("exit( ) prototype mismatch: {} arg{} passed, 1 expected", passed,
                     passed == 1 ? "" : "s"));
  }
  Node& argument = *call.children[1];
  expression(argument);
  if (is_dynamic(argument) || !is_integer(argument)) {
    fail("D_PROTO_ARG", argument,
         fmt::format("exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t "
                     "argument: {}",
                     type_name(argument)));
  }
  Node shape;
  shape.type = types_.int_type;
  Action action;
  action.kind = ActionKind::exit;
  action.values.push_back(value_as(argument, describe(shape)));
  return action;
}

// The aggregation that an argument names; `family` is that of the tags: "D_CLEAR". Keys are passed
// over, as libdtrace does: all of the aggregation is meant.
const AggregationDesc& Sema::defined_aggregation(Node& call, std::size_t argument,
                                                 const std::string& family) {
  Node& passed = *call.children[argument];
  const std::string& function = call.children[0]->text;
  expression(passed);
  const Node* const named = aggregation_of(passed);
  if (named == nullptr) {
    fail(family + "_AGGARG", passed,
         fmt::format("{}( ) argument #{} is incompatible with prototype:\n\tprototype: "
                     "aggregation\n\t argument: {}",
                     function, argument, type_name(passed)));
  }
  const Node& node = *named;
  const auto found = symbols_.aggregations.find(node.text);
  if (found == symbols_.aggregations.end()) {
    Diagnostic diagnostic = source_.diagnostic(
        family + "_AGGBAD", node.place, fmt::format("undefined aggregation: @{}", node.text));
    std::vector<std::string> names;
    for (const AggregationDesc& candidate : space_.aggregations) names.push_back(candidate.name);
    diagnostic.near_names = nearest_names(node.text, names);
    throw CompileError{std::move(diagnostic)};
  }
  return space_.aggregations[found->second];
}

// clear, trunc, normalize, denormalize.
Action Sema::aggregation_action(Node& call, ActionKind kind) {
  const std::string& name = call.children[0]->text;
  const std::size_t passed = call.children.size() - 1;
  std::string family = "D_NORMALIZE";
  if (kind == ActionKind::clear) {
    family = "D_CLEAR";
    if (passed != 1) {
      fail("D_CLEAR_PROTO", call,
           fmt::format("{}( ) prototype mismatch: {} args passed, 1 expected", name, passed));
    }
  } else if (kind == ActionKind::trunc) {
    family = "D_TRUNC";
    if (passed < 1 || passed > 2) {
      fail("D_TRUNC_PROTO", call,
           fmt::format("{}( ) prototype mismatch: {} args passed, {} expected", name, passed,
                       passed < 1 ? "at least 1" : "no more than 2"));
    }
  } else {
    const std::size_t wanted = kind == ActionKind::normalize ? 2 : 1;
    if (passed != wanted) {
      fail("D_NORMALIZE_PROTO", call,
           fmt::format("{}( ) prototype mismatch: {} args passed, {} expected", name, passed,
                       wanted));
    }
  }
  Action action;
  action.kind = kind;
  action.aggregation = defined_aggregation(call, 1, family).id;
  if (passed == 2) {
    Node& number = *call.children[2];
    expression(number);
    if (!is_scalar(number)) {
      fail(family + "_SCALAR", number,
           fmt::format("{}( ) argument #2 must be of scalar type", name));
    }
    action.values.push_back(value(number));
  }
  return action;
}

}  // namespace dtmalloc::dtrace
