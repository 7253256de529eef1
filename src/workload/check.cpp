// SPDX-License-Identifier: BSD-2-Clause
// What this machine cannot do of a workload, said before anything happens: operands that are
// constants. What is drawn or counted is looked at when it is reached, by the same functions.
// Invariants:   what is refused here is refused by the operation itself too, when it is reached

#include <algorithm>

#include "kern/tunables.hpp"
#include "workload/parser.hpp"
#include "workload/runner.hpp"

namespace dtmalloc::workload {

// --- operands

int Runner::State::cpu_of(const Op& op, const Value& value, std::int64_t n) const {
  if (n < 0 || n >= cpus.count())
    fail(op, value, "WL_RANGE",
         "there is no CPU " + std::to_string(n) + ": this machine has " +
             std::to_string(cpus.count()));
  return static_cast<int>(n);
}

int Runner::State::own_cpu_of(const Op& op) const {
  if (op.cpu < cpus.count()) return op.cpu;
  Diagnostic d = workload.diagnose(op, "WL_RANGE",
                                   "there is no CPU " + std::to_string(op.cpu) +
                                       ": this machine has " + std::to_string(cpus.count()));
  // No string and no call site can precede it.
  const std::size_t key = d.source_line.find(" cpu=", op.column == 0 ? 0 : op.column - 1);
  if (key != std::string::npos) {
    const std::size_t from = key + 5;
    const std::size_t last =
        std::min(d.source_line.find_first_not_of("0123456789x", from), d.source_line.size());
    d.where.column = static_cast<std::uint32_t>(from + 1);
    d.where.length = static_cast<std::uint32_t>(std::max<std::size_t>(last - from, 1));
  }
  throw RunError{std::move(d)};
}

int Runner::State::domain_of(const Op& op, const Value& value, std::int64_t n) const {
  const int domains = kernel.config().domains;
  if (n < 0 || n >= domains)
    fail(op, value, "WL_RANGE",
         "there is no domain " + std::to_string(n) + ": this machine has " +
             std::to_string(domains));
  return static_cast<int>(n);
}

std::uint8_t Runner::State::byte_of(const Op& op, std::int64_t n) const {
  if (n < 0 || n > 255) fail(op, op.value, "WL_RANGE", std::to_string(n) + " is no byte: 0 to 255");
  return static_cast<std::uint8_t>(n);
}

std::int64_t Runner::State::count_of(const Op& op, std::int64_t n) const {
  if (n < 0)
    fail(op, op.value, "WL_RANGE", "a block cannot be repeated " + std::to_string(n) + " times");
  return n;
}

std::vector<std::string> Runner::State::zone_names() const {
  std::vector<std::string> names;
  for (const ZoneStats& zone : kernel.zones()) names.push_back(zone.name);
  for (const ZoneDecl& zone : workload.zones) names.push_back(zone.name);
  return names;
}

std::vector<std::string> Runner::State::near_zones(const std::string& name) const {
  std::vector<std::string> known = zone_names();
  for (const ZoneDecl& zone : workload.zones) known.push_back(zone.symbol);
  return nearest_names(name, known);
}

void Runner::State::refuse_zone(const Op& op) const {
  const std::string& name = workload.strings[op.detail];
  Diagnostic d = workload.diagnose(op, "WL_UNKNOWN_ZONE", "there is no zone " + name);
  d.near_names = nearest_names(name, zone_names());
  // The name stands behind its key; what precedes it holds no string.
  const std::size_t key = d.source_line.find("zone=", op.column == 0 ? 0 : op.column - 1);
  if (key != std::string::npos) {
    const std::size_t from = key + 5;
    const std::size_t last = std::min(d.source_line.find('"', from + 1), d.source_line.size() - 1);
    d.where.column = static_cast<std::uint32_t>(from + 1);
    d.where.length = static_cast<std::uint32_t>(last + 1 - from);
  }
  throw RunError{std::move(d)};
}

void Runner::State::refuse_sysctl(const Op& op) const {
  const std::string& name = workload.sysctls[op.detail].name;
  try {
    fail(op, op.value, "WL_UNKNOWN_SYSCTL", "unknown oid '" + name + "'");
  } catch (RunError& error) {
    if (const std::string_view option = needed_option(name); !option.empty())
      error.diagnostic.expected = "the kernel option " + std::string(option);
    else
      error.diagnostic.near_names = nearest_names(name, kernel.sysctl().names());
    throw;
  }
}

// --- the pass

bool Runner::State::is_constant(Index index) const {
  const Expr& expr = workload.exprs[index];
  if (expr.kind == Expr::Kind::number) return true;
  if (expr.kind < Expr::Kind::negate || expr.kind > Expr::Kind::logical_or) return false;
  return is_constant(expr.a) && (expr.b == kNone || is_constant(expr.b));
}

bool Runner::State::is_constant(const Value& value) const {
  return value.expr == kNone || is_constant(value.expr);
}

// Zones that a condition asks about, also where it is not reached.
void Runner::State::check_expr(const Op& op, Index index) {
  const Expr& expr = workload.exprs[index];
  if (expr.kind >= Expr::Kind::negate && expr.kind <= Expr::Kind::logical_or) {
    check_expr(op, expr.a);
    if (expr.b != kNone) check_expr(op, expr.b);
    return;
  }
  const bool asks_zone = expr.kind == Expr::Kind::fails || expr.kind == Expr::Kind::sleeps ||
                         expr.kind == Expr::Kind::xdomain;
  if (!asks_zone || expr.a != kNone) return;
  const std::string& name = workload.strings[static_cast<std::size_t>(expr.number)];
  const std::vector<std::string> names = zone_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(op, expr, "WL_UNKNOWN_ZONE", "there is no zone " + name, near_zones(name));
}

void Runner::State::check_domains(const Op& op) const {
  const Placement& from = workload.placements[op.detail];
  if (from.set == Placement::Set::prefer || from.set == Placement::Set::fixed) {
    domain_of(op, {}, from.number);
  } else if (from.set == Placement::Set::mask) {
    for (int domain = 0; domain < kMaxDomains; ++domain)
      if ((from.number >> domain & 1) != 0) domain_of(op, {}, domain);
  }
}

void Runner::State::check(const Op& op) {
  if (op.cpu != kSameCpu) own_cpu_of(op);
  for (const BlockRef* ref : {&op.target, &op.source})
    for (const Index index : {ref->first, ref->second})
      if (index != kNone && is_constant(index)) evaluate(main, op, index);
  const bool constant = is_constant(op.value);
  if (is_constant(op.extra)) {
    if (has_second_number(op.kind))
      size_value(main, op, op.extra, "number");
    else
      evaluate(main, op, op.extra);
  }
  const std::int64_t value = constant ? evaluate(main, op, op.value) : 0;
  switch (op.kind) {
    case OpKind::cpu:
      if (constant) cpu_of(op, op.value, value);
      return;
    case OpKind::repeat:
      count_of(op, value);
      return;
    case OpKind::poke:
      byte_of(op, value);
      return;
    case OpKind::thread: {
      const std::optional<Value>& cpu = workload.threads[op.detail].cpu;
      if (cpu && is_constant(*cpu)) cpu_of(op, *cpu, evaluate(main, op, *cpu));
      return;
    }
    case OpKind::expect:
      if (op.value.expr != kNone) check_expr(op, op.value.expr);
      return;
    case OpKind::reclaim: {
      if (op.extra.number != 0 && constant) domain_of(op, op.value, value);
      if (op.detail == kNone) return;
      const std::vector<std::string> names = zone_names();
      if (std::find(names.begin(), names.end(), workload.strings[op.detail]) == names.end())
        refuse_zone(op);
      return;
    }
    case OpKind::sysctl: {
      // A zone that is made later brings names of its own.
      const std::string& name = workload.sysctls[op.detail].name;
      const bool later = name.starts_with("vm.uma.") &&
                         std::find(zones.begin(), zones.end(), nullptr) != zones.end();
      if (!later && kernel.sysctl().list(name).empty()) refuse_sysctl(op);
      return;
    }
    case OpKind::wait:
      if (constant) size_value(main, op, op.value, "time");
      return;
    default:
      if (op.kind < OpKind::malloc || op.kind > OpKind::contigmalloc_domainset) return;
      if (constant) size_value(main, op, op.value, "size");
      if (has_domain_set(op.kind) && op.detail != kNone) check_domains(op);
  }
}

Result<void> Runner::State::check() {
  std::optional<Diagnostic> first;  // by its line
  for (const std::vector<Op>& body : workload.bodies) {
    for (const Op& op : body) {
      if (first && op.line >= first->where.line) break;
      try {
        check(op);
      } catch (RunError& error) {
        first = std::move(error.diagnostic);
        break;
      }
    }
  }
  if (first) return std::move(*first);
  return {};
}

}  // namespace dtmalloc::workload
