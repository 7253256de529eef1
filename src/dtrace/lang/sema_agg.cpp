// SPDX-License-Identifier: BSD-2-Clause
// @name[keys] = function(arguments): signatures, quantize parameters.
// Counterpart:  dt_cc.c (dt_compile_agg)
#include <fmt/format.h>

#include <array>
#include <limits>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::int64_t kMost16 = std::numeric_limits<std::uint16_t>::max();

struct Arity {
  std::size_t least, most;
};
Arity arity(AggFunction function) {
  switch (function) {
    case AggFunction::count:
      return {0, 0};
    case AggFunction::quantize:
      return {1, 2};
    case AggFunction::lquantize:
      return {3, 5};
    case AggFunction::llquantize:
      return {5, 6};
    default:
      return {1, 1};
  }
}

}  // namespace

// Key #number of an aggregation: what may be recorded.
void Sema::aggregation_key(Node& key, std::size_t number) {
  if (is_symbolic(key)) {
    symbolic(key);  // its type
    return;
  }
  if (is_action(key)) no_value(key, FunctionKind::action);
  expression(key);
  if (is_dynamic(key) || type_of(key).size == 0) {
    fail("D_KEY_TYPE", key,
         fmt::format("{} expression may not be used as aggregation index: key #{}",
                     is_dynamic(key) ? "dynamic" : "void", number));
  }
}

std::int64_t Sema::quantize_constant(const Node& argument, std::string_view tag,
                                     const std::string& text) {
  if (!argument.constant || !is_integer(argument)) fail(tag, argument, text);
  return static_cast<std::int64_t>(argument.value);
}

void Sema::lquantize(Node& call, AggregationDesc& desc) {
  const auto argument = [&](std::size_t i) -> Node& { return *call.children[i + 1]; };
  const auto fits32 = [](std::int64_t value) {
    return value >= std::numeric_limits<std::int32_t>::min() &&
           value <= std::numeric_limits<std::int32_t>::max();
  };
  const std::int64_t base = quantize_constant(
      argument(1), "D_LQUANT_BASETYPE", "lquantize( ) argument #1 must be an integer constant");
  if (!fits32(base)) {
    fail("D_LQUANT_BASEVAL", argument(1), "lquantize( ) argument #1 must be a 32-bit quantity");
  }
  const std::int64_t limit = quantize_constant(
      argument(2), "D_LQUANT_LIMTYPE", "lquantize( ) argument #2 must be an integer constant");
  if (!fits32(limit)) {
    fail("D_LQUANT_LIMVAL", argument(2), "lquantize( ) argument #2 must be a 32-bit quantity");
  }
  if (limit <= base) {
    fail("D_LQUANT_MISMATCH", call,
         "lquantize( ) base (argument #1) must be less than limit (argument #2)");
  }
  std::int64_t step = 1;
  if (call.children.size() > 4) {
    constexpr std::string_view kText =
        "lquantize( ) argument #3 must be a non-zero positive integer constant";
    step = quantize_constant(argument(3), "D_LQUANT_STEPTYPE", std::string(kText));
    if (step == 0) fail("D_LQUANT_STEPTYPE", argument(3), std::string(kText));
    if (step < 0 || step > kMost16) {
      fail(step < 0 ? "D_LQUANT_STEPTYPE" : "D_LQUANT_STEPVAL", argument(3),
           step < 0 ? std::string(kText) : "lquantize( ) argument #3 must be a 16-bit quantity");
    }
  }
  const std::int64_t levels = (limit - base) / step;
  if (levels == 0) {
    fail("D_LQUANT_STEPLARGE", call,
         "lquantize( ) step (argument #3) too large: must have at least one quantization level");
  }
  if (levels > kMost16) {
    fail("D_LQUANT_STEPSMALL", call,
         "lquantize( ) step (argument #3) too small: number of quantization levels must be a "
         "16-bit quantity");
  }
  desc.base = static_cast<std::int32_t>(base);
  desc.limit = static_cast<std::int32_t>(limit);
  desc.step = static_cast<std::uint16_t>(step);
}

void Sema::llquantize(Node& call, AggregationDesc& desc) {
  struct Parameter {
    std::string_view tag, what;
    std::uint16_t AggregationDesc::*field;
  };
  static constexpr std::array<Parameter, 4> kParameters = {{
      {"FACTOR", "factor", &AggregationDesc::factor},
      {"LOW", "low magnitude", &AggregationDesc::low},
      {"HIGH", "high magnitude", &AggregationDesc::high},
      {"NSTEP", "linear steps per magnitude", &AggregationDesc::nsteps},
  }};
  for (std::size_t i = 0; i < kParameters.size(); ++i) {
    const Parameter& parameter = kParameters[i];
    const Node& argument = *call.children[i + 2];
    const std::string shown = fmt::format("llquantize( ) argument #{} ({})", i + 1, parameter.what);
    const std::int64_t value =
        quantize_constant(argument, fmt::format("D_LLQUANT_{}TYPE", parameter.tag),
                          shown + " must be an integer constant");
    if (value < 0 || value > kMost16) {
      fail(fmt::format("D_LLQUANT_{}VAL", parameter.tag), argument,
           shown + " must be an unsigned 16-bit quantity");
    }
    desc.*parameter.field = static_cast<std::uint16_t>(value);
  }
  if (desc.factor < 2) {
    fail("D_LLQUANT_FACTORSMALL", call, "llquantize( ) factor (argument #1) must be two or more");
  }
  if (desc.high <= desc.low) {
    fail("D_LLQUANT_MAGRANGE", call,
         "llquantize( ) high magnitude (argument #3) must be greater than low magnitude (argument "
         "#2)");
  }
  if (desc.factor > desc.nsteps) {
    fail("D_LLQUANT_FACTORNSTEPS", call,
         "llquantize( ) factor (argument #1) must be less than or equal to the number of linear "
         "steps per magnitude (argument #4)");
  }
  // Some power of the factor is a multiple of the steps, and the steps are one of the factor.
  std::uint64_t power = desc.factor;
  while (power < desc.nsteps) power *= desc.factor;
  if (desc.nsteps % desc.factor != 0 || power % desc.nsteps != 0) {
    fail("D_LLQUANT_FACTOREVEN", call,
         "llquantize( ) factor (argument #1) must evenly divide the number of steps per magnitude "
         "(argument #4), and the number of steps per magnitude must evenly divide a power of the "
         "factor");
  }
  std::uint64_t top = 1;
  for (unsigned i = 0; i <= desc.high; ++i) {
    if (top > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / desc.factor) {
      fail("D_LLQUANT_MAGTOOBIG", call,
           fmt::format("llquantize( ) factor ({}) raised to power of high magnitude ({}) plus 1 "
                       "overflows 64-bits",
                       desc.factor, desc.high));
    }
    top *= desc.factor;
  }
}

// The same parameters as at the first use.
void Sema::match_parameters(const Node& call, const AggregationDesc& first,
                            const AggregationDesc& now) const {
  const auto differ = [&](std::string_view tag, std::string_view what, int number, std::int64_t was,
                          std::int64_t is) {
    if (was == is) return;
    fail(tag, call,
         fmt::format("{}( ) {} (argument #{}) doesn't match previous declaration: expected {}, "
                     "found {}",
                     to_string(now.function), what, number, was, is));
  };
  if (now.function == AggFunction::lquantize) {
    differ("D_LQUANT_MATCHBASE", "base", 1, first.base, now.base);
    differ("D_LQUANT_MATCHLIM", "limit", 2, first.limit, now.limit);
    differ("D_LQUANT_MATCHSTEP", "step", 3, first.step, now.step);
  }
  if (now.function == AggFunction::llquantize) {
    differ("D_LLQUANT_FACTORMATCH", "factor", 1, first.factor, now.factor);
    differ("D_LLQUANT_LOWMATCH", "low magnitude", 2, first.low, now.low);
    differ("D_LLQUANT_HIGHMATCH", "high magnitude", 3, first.high, now.high);
    differ("D_LLQUANT_NSTEPMATCH", "linear steps per magnitude", 4, first.nsteps, now.nsteps);
  }
}

const Node* Sema::aggregation_of(const Node& node) {
  if (node.kind == NodeKind::aggregation) return &node;
  const bool assigns = node.kind == NodeKind::assign && node.op == Op::assign;
  return assigns && node.children[0]->kind == NodeKind::aggregation ? node.children[0] : nullptr;
}

// The function of @a = f().
const FunctionInfo& Sema::aggregating_function(Node& node) {
  Node& call = *node.children[1];
  const FunctionInfo* info =
      call.kind == NodeKind::call && call.children[0]->kind == NodeKind::identifier
          ? find_function(call.children[0]->text, input_.version)
          : nullptr;
  if (info == nullptr || info->kind != FunctionKind::aggregating) {
    if (info == nullptr) expression(call);
    fail("D_AGG_FUNC", node,
         fmt::format("@{} must be assigned the result of an aggregating function",
                     node.children[0]->text));
  }
  return *info;
}

Action Sema::aggregate(Node& node) {
  Node& target = *node.children[0];
  Node& call = *node.children[1];
  const FunctionInfo* const info = &aggregating_function(node);
  AggregationDesc desc;
  desc.name = target.text;
  desc.function = static_cast<AggFunction>(info->id);
  desc.line = node.place.line;
  const auto known = symbols_.aggregations.find(target.text);
  const AggregationDesc* first =
      known == symbols_.aggregations.end() ? nullptr : &space_.aggregations[known->second];

  for (std::size_t i = 0; i < target.children.size(); ++i) {
    aggregation_key(*target.children[i], i + 1);
  }
  if (first != nullptr) {
    const std::size_t passed = target.children.size();
    const std::size_t wanted = first->keys.size();
    if (passed != wanted) {
      fail("D_PROTO_LEN", target,
           fmt::format("@{}[ ] prototype mismatch: {} key{} passed, {} expected", target.text,
                       passed, passed == 1 ? "" : "s", wanted));
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      Node shape;
      shape.type = first->keys[i].type;
      if (argument_fits(shape, *target.children[i])) continue;
      fail(
          "D_PROTO_ARG", *target.children[i],
          fmt::format("@{}[ ] key #{} is incompatible with prototype:\n\tprototype: {}\n\t{:>9}: "
                      "{}",
                      target.text, i + 1, type_name(shape), "key", type_name(*target.children[i])));
    }
    if (first->function != desc.function) {
      fail("D_AGG_REDEF", node,
           fmt::format("aggregation redefined: @{}\n\t current: @{} = {}( )\n\tprevious: @{} = {}( "
                       ") : line {}",
                       target.text, target.text, to_string(desc.function), target.text,
                       to_string(first->function), first->line));
    }
  }

  const std::size_t passed = call.children.size() - 1;
  const Arity allowed = arity(desc.function);
  const auto many = [&](std::string_view least, std::size_t count) {
    fail("D_PROTO_LEN", call,
         fmt::format("{}( ) prototype mismatch: {} arg{} passed, {}{} expected", info->name, passed,
                     passed == 1 ? "" : "s", least, count));
  };
  if (passed < allowed.least) {
    many(allowed.most > allowed.least ? "at least " : "", allowed.least);
  }
  if (passed > allowed.most) {
    if (allowed.most == allowed.least) many("", allowed.most);
    fail("D_PROTO_LEN", call,
         fmt::format("{}( ) prototype mismatch: {} args passed, at most {} expected", info->name,
                     passed, allowed.most));
  }
  for (std::size_t i = 1; i <= passed; ++i) expression(*call.children[i]);
  if (passed > 0 && !is_scalar(*call.children[1])) {
    fail("D_AGG_SCALAR", *call.children[1],
         fmt::format("{}( ) argument #1 must be of scalar type", info->name));
  }
  // The parameters of lquantize and llquantize are int32_t by prototype.
  const std::size_t parameters = desc.function == AggFunction::lquantize    ? 2
                                 : desc.function == AggFunction::llquantize ? 4
                                                                            : 0;
  for (std::size_t i = 2; i < parameters + 2; ++i) {
    const Node& argument = *call.children[i];
    if (!is_dynamic(argument) && is_integer(argument)) continue;
    fail("D_PROTO_ARG", argument,
         fmt::format("{}( ) argument #{} is incompatible with prototype:\n\tprototype: "
                     "int32_t\n\t argument: {}",
                     info->name, i, type_name(argument)));
  }
  if (desc.function == AggFunction::lquantize) lquantize(call, desc);
  if (desc.function == AggFunction::llquantize) llquantize(call, desc);
  if (first != nullptr) match_parameters(call, *first, desc);

  const std::size_t increment = allowed.most > allowed.least ? allowed.most : 0;
  if (increment != 0 && passed == increment && !is_scalar(*call.children[increment])) {
    fail("D_PROTO_ARG", *call.children[increment],
         fmt::format("{}( ) increment value (argument #{}) must be of scalar type", info->name,
                     increment - 1));
  }

  Action action;
  action.kind = ActionKind::aggregate;
  for (std::size_t i = 0; i < target.children.size(); ++i) {
    Node& key = *target.children[i];
    if (is_symbolic(key)) {
      Value value = symbolic(key);
      if (first != nullptr) value.desc = first->keys[i];
      desc.keys.push_back(value.desc);
      action.values.push_back(std::move(value));
      continue;
    }
    ValueDesc as = first != nullptr ? first->keys[i] : describe(key);
    as.userland = key.userland;
    desc.keys.push_back(as);
    action.values.push_back(value_as(key, as));
  }
  if (passed > 0) action.argument = value(*call.children[1]);
  if (increment != 0 && passed == increment) action.increment = value(*call.children[increment]);
  if (first == nullptr) {
    desc.id = static_cast<std::uint32_t>(space_.aggregations.size()) + 1;
    symbols_.aggregations.emplace(desc.name, space_.aggregations.size());
    space_.aggregations.push_back(desc);
    action.aggregation = desc.id;
  } else {
    action.aggregation = first->id;
  }
  return action;
}

}  // namespace dtmalloc::dtrace
