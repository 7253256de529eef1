// SPDX-License-Identifier: BSD-2-Clause
// The workload as a value: comparison, the boot part, places for messages.

#include <algorithm>
#include <dtmalloc/workload/workload.hpp>

#include "workload/parser.hpp"

namespace dtmalloc::workload {
namespace {

// Compares two workloads by what they say, not by how their parts are numbered.
class Comparison {
 public:
  Comparison(const Workload& a, const Workload& b) : a_(a), b_(b) {}

  bool ops(const std::vector<Op>& x, const std::vector<Op>& y) const {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [this](const Op& p, const Op& q) { return op(p, q); });
  }

 private:
  bool op(const Op& x, const Op& y) const {
    if (x.kind != y.kind || x.flags != y.flags || x.cpu != y.cpu) return false;
    if (!type(x.type, y.type) || !ref(x.target, y.target) || !ref(x.source, y.source)) return false;
    if (!value(x.value, y.value) || !value(x.extra, y.extra)) return false;
    if ((x.site == kNone) != (y.site == kNone)) return false;
    if (x.site != kNone && a_.sites[x.site] != b_.sites[y.site]) return false;
    if (!detail(x, y)) return false;
    if ((x.body == kNone) != (y.body == kNone)) return false;
    if (x.body != kNone && !ops(a_.bodies[x.body], b_.bodies[y.body])) return false;
    if (x.kind == OpKind::type) {
      const TypeDecl &s = a_.types[x.type], &t = b_.types[y.type];
      return s.shortdesc == t.shortdesc && s.longdesc == t.longdesc;
    }
    return true;
  }

  bool detail(const Op& x, const Op& y) const {
    if ((x.detail == kNone) != (y.detail == kNone)) return false;
    if (x.detail == kNone) return true;
    if (x.kind == OpKind::history) return a_.histories[x.detail] == b_.histories[y.detail];
    if (x.kind == OpKind::repeat) return true;  // the variable's name does not matter
    if (has_domain_set(x.kind) || has_address_range(x.kind))
      return a_.placements[x.detail] == b_.placements[y.detail];
    if (x.kind == OpKind::reclaim) return a_.strings[x.detail] == b_.strings[y.detail];
    if (x.kind == OpKind::sysctl) return a_.sysctls[x.detail] == b_.sysctls[y.detail];
    if (x.kind != OpKind::thread) return a_.zones[x.detail] == b_.zones[y.detail];
    const ThreadDecl &s = a_.threads[x.detail], &t = b_.threads[y.detail];
    return s.name == t.name && s.execname == t.execname && optional(s.cpu, t.cpu) &&
           optional(s.pid, t.pid) && optional(s.ppid, t.ppid) && optional(s.tid, t.tid) &&
           optional(s.uid, t.uid) && optional(s.gid, t.gid);
  }

  bool type(Index x, Index y) const {
    if (x == kNone || y == kNone) return x == y;
    return a_.types[x].symbol == b_.types[y].symbol;
  }
  bool name(Index x, Index y) const {
    if (x == kNone || y == kNone) return x == y;
    return a_.names[x].text == b_.names[y].text && a_.names[x].arity == b_.names[y].arity;
  }
  bool ref(const BlockRef& x, const BlockRef& y) const {
    return name(x.name, y.name) && expr(x.first, y.first) && expr(x.second, y.second);
  }
  bool value(const Value& x, const Value& y) const {
    return x.number == y.number && expr(x.expr, y.expr);
  }
  bool optional(const std::optional<Value>& x, const std::optional<Value>& y) const {
    return x.has_value() == y.has_value() && (!x || value(*x, *y));
  }
  bool expr(Index x, Index y) const {
    if (x == kNone || y == kNone) return x == y;
    const Expr &s = a_.exprs[x], &t = b_.exprs[y];
    if (s.kind != t.kind || s.args.size() != t.args.size()) return false;
    if (s.kind == Expr::Kind::fails || s.kind == Expr::Kind::sleeps ||
        s.kind == Expr::Kind::xdomain) {
      if (s.a != kNone && t.a != kNone) return a_.zones[s.a].symbol == b_.zones[t.a].symbol;
      return s.a == t.a && a_.strings[static_cast<std::size_t>(s.number)] ==
                               b_.strings[static_cast<std::size_t>(t.number)];
    }
    if (!expr(s.a, t.a) || !expr(s.b, t.b)) return false;
    for (std::size_t i = 0; i < s.args.size(); ++i) {
      if (!expr(s.args[i], t.args[i])) return false;
    }
    switch (s.kind) {
      case Expr::Kind::inuse:
      case Expr::Kind::memuse:
      case Expr::Kind::requests:
        return type(static_cast<Index>(s.number), static_cast<Index>(t.number));
      case Expr::Kind::size:
      case Expr::Kind::domain:
      case Expr::Kind::is_null:
        return name(static_cast<Index>(s.number), static_cast<Index>(t.number));
      default:
        return s.number == t.number;
    }
  }

  const Workload& a_;
  const Workload& b_;
};

}  // namespace

void KernelSettings::apply(KernelConfig& config) const {
  if (release) config.release = *release;
  if (cpus) config.cpus = *cpus;
  if (domains) config.domains = *domains;
  if (mem) config.mem = *mem;
  if (seed) config.seed = *seed;
  if (op_cost) config.op_cost = *op_cost;
  if (real_clock) config.real_clock = *real_clock;
  if (!options.empty())
    static_cast<void>(config.set_options(options));  // the parser refused others
  if (invariants) config.invariants = *invariants;
  if (redzone) config.redzone = *redzone;
  if (memguard) config.memguard = *memguard;
  if (make_failures) config.make_failures = *make_failures;
  if (maxzones) config.maxzones = *maxzones;
  config.tunables.insert(config.tunables.end(), tunables.begin(), tunables.end());
  if (ledger) config.ledger = ledger;
  if (!classes.empty()) config.classes = classes;
}

bool Workload::operator==(const Workload& other) const {
  return kernel == other.kernel && Comparison(*this, other).ops(bodies.at(0), other.bodies.at(0));
}

std::size_t Workload::boot_statements() const {
  const auto& ops = bodies.at(0);
  const auto first = std::find_if(ops.begin(), ops.end(), [](const Op& op) {
    return op.kind != OpKind::type && op.kind != OpKind::history && op.kind != OpKind::zone;
  });
  return static_cast<std::size_t>(first - ops.begin());
}

Diagnostic Workload::diagnose(const Op& op, std::string tag, std::string message) const {
  Diagnostic d;
  d.tag = std::move(tag);
  d.where = {file, op.line, op.column, 1};
  d.message = std::move(message);
  if (text == nullptr || op.line == 0) return d;
  std::size_t start = 0;
  for (std::uint32_t line = first_line; line < op.line && start < text->size(); ++line) {
    start = std::min(text->find('\n', start), text->size() - 1) + 1;
  }
  const std::size_t end = std::min(text->find('\n', start), text->size());
  d.source_line = text->substr(start, end - start);
  // Underline the statement up to its comment.
  const std::size_t comment = std::min(d.source_line.find('#'), d.source_line.size());
  const std::size_t last = d.source_line.find_last_not_of(" \t\r{", comment == 0 ? 0 : comment - 1);
  if (last != std::string::npos && last + 1 >= op.column) {
    d.where.length = static_cast<std::uint32_t>(last + 2 - op.column);
  }
  return d;
}

Diagnostic Workload::diagnose(const Op& op, const Expr& term, std::string tag,
                              std::string message) const {
  Diagnostic d = diagnose(op, std::move(tag), std::move(message));
  if (term.column == 0) return d;
  d.where.column = term.column;
  d.where.length = term.length;
  return d;
}

}  // namespace dtmalloc::workload
