// SPDX-License-Identifier: BSD-2-Clause
// A compiled D program: what the compiler hands to the framework and to the printer.
// Counterpart:  DOF, dtrace_ecbdesc_t, dtrace_actdesc_t
#pragma once

#include <dtmalloc/dtrace/probe.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtrace/dif/attributes.hpp"
#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

// One conversion of a printf format, or literal text before it.
struct Conversion {
  std::string literal;       // text before the conversion; the last entry may have only this
  char conversion = 0;       // d i o u x X c s S p e f g Y T C k a ... 0: literal only; '%': %%
  bool aggregation = false;  // %@
  bool left = false, plus = false, space = false, alternate = false, zero = false, group = false;
  int width = -1, precision = -1;
  bool width_arg = false, precision_arg = false;  // '*'
  std::string modifier;                           // h l ll ...
};
struct Format {
  std::string text;
  std::vector<Conversion> conversions;
};

enum class AggFunction : std::uint8_t {
  count,
  sum,
  min,
  max,
  avg,
  stddev,
  quantize,
  lquantize,
  llquantize,
};
std::string_view to_string(AggFunction function);

// An aggregation of a consumer; all its programs share the ids.
struct AggregationDesc {
  std::string name;  // "_" for @
  std::uint32_t id = 0;
  AggFunction function = AggFunction::count;
  std::vector<ValueDesc> keys;
  std::int32_t base = 0, limit = 0;  // lquantize
  std::uint16_t step = 1;
  std::uint16_t factor = 0, low = 0, high = 0, nsteps = 0;  // llquantize
  std::uint32_t line = 0;                                   // of its first use
};

// A value that a statement computes.
struct Value {
  VerifiedDif dif;
  ValueDesc desc;
};

enum class ActionKind : std::uint8_t {
  eval,  // an expression for its side effects; records nothing
  trace,
  printf,
  printa,
  exit,
  aggregate,
  clear,
  trunc,
  normalize,
  denormalize,
  print,
  tracemem,
  printm,
  stack,
  ustack,
  symbol,  // sym, func, mod, usym, ufunc, umod, uaddr
  speculate,
  commit,
  discard,
  setopt,
  ftruncate,
  system,
  freopen,
  raise,
  stop,
  chill,
  panic,
  breakpoint,
};

bool is_destructive(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::eval;
  // eval, trace, exit: one; printf: one per '*' and conversion, in order; aggregate: the keys;
  // trunc (may be absent), normalize: the number.
  std::vector<Value> values;
  std::optional<Value> argument;         // aggregate: the value; absent for count()
  std::optional<Value> increment;        // quantize family
  std::uint32_t aggregation = 0;         // aggregate, clear, ...
  std::vector<std::uint32_t> printed;    // printa
  std::shared_ptr<const Format> format;  // printf, printa (null: default layout)
  std::uint32_t first_index = 1;  // number of its first action in run-time errors (dtrace.md 17.3)

  template <typename Function>
  void for_each_dif(const Function& function) const {
    for (const Value& value : values) function(value.dif);
    if (argument) function(argument->dif);
    if (increment) function(increment->dif);
  }
};

// A clause on one description. Several descriptions before one body are several clauses.
struct Clause {
  ProbeDescription description;
  std::optional<VerifiedDif> predicate;
  std::vector<Action> actions;
  bool empty_body = false;  // no statements: prints a default line
  SourceLocation where;
  // Of the description; the least of the statements.
  Attribute description_attribute = kMostStable, statement_attribute = kMostStable;
};

struct Program {
  std::vector<Clause> clauses;
};
// Whether its code reaches a struct, union or array larger than kStatvarMax.
bool uses_large_variable(const Program& program, const VariableList& variables);

struct Definitions;

// What all programs of a consumer share; grows with every compile.
struct ProgramSpace {
  TypeTable* types = nullptr;
  std::vector<AggregationDesc> aggregations;  // id = index + 1
  VariableList variables;
  std::uint32_t globals = 0, locals = 0, threads = 0;  // numbers of ids given out
  std::uint32_t& count(Scope scope) {
    return scope == Scope::global ? globals : scope == Scope::local ? locals : threads;
  }
  std::map<std::string, TypeId> externs;  // symbols that a program declared and nobody defines
  std::map<std::string, Attribute, std::less<>>
      attributes;                              // that a program gave: "x" "this->x" "@x"
  std::shared_ptr<Definitions> definitions;    // of the compiler; null before its first program
  bool error_clause = false;                   // a program has the clause that desugaring adds
  std::string strings = std::string(1, '\0');  // string tables, one after the other: DifState
};

}  // namespace dtmalloc::dtrace
