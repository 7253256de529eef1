// SPDX-License-Identifier: BSD-2-Clause
// Expressions of a running workload: arithmetic, distributions, questions to the kernel.

#include <algorithm>

#include "vm/uma_int.hpp"
#include "workload/runner.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::int64_t kMostZipf = 65536;

}  // namespace

void Runner::State::fail(const Op& op, const char* tag, std::string message,
                         std::vector<std::string> near) const {
  Diagnostic d = workload.diagnose(op, tag, std::move(message));
  d.near_names = std::move(near);
  throw RunError{std::move(d)};
}

void Runner::State::fail(const Op& op, const Expr& term, const char* tag, std::string message,
                         std::vector<std::string> near) const {
  Diagnostic d = workload.diagnose(op, term, tag, std::move(message));
  d.near_names = std::move(near);
  throw RunError{std::move(d)};
}

void Runner::State::fail(const Op& op, const Value& value, const char* tag, std::string message,
                         std::vector<std::string> near) const {
  if (value.expr != kNone)
    fail(op, workload.exprs[value.expr], tag, std::move(message), std::move(near));
  Diagnostic d = workload.diagnose(op, tag, std::move(message));
  d.near_names = std::move(near);
  if (op.operand != 0) {
    d.where.column = op.operand;
    const std::size_t from = std::min<std::size_t>(op.operand - 1, d.source_line.size());
    const std::size_t last =
        std::min(d.source_line.find_first_of(" \t\r={}#", from), d.source_line.size());
    d.where.length = static_cast<std::uint32_t>(std::max<std::size_t>(last - from, 1));
  }
  throw RunError{std::move(d)};
}

std::uint64_t Runner::State::size_expr(Thread& thread, const Op& op, const Value& value,
                                       const char* what) {
  const std::int64_t n = evaluate(thread, op, value.expr);
  if (n < 0) {
    fail(op, value, "WL_RANGE", "the " + std::string(what) + " is negative: " + std::to_string(n));
  }
  return static_cast<std::uint64_t>(n);
}

std::int64_t Runner::State::evaluate(Thread& thread, const Op& op, const Value& value) {
  return value.expr == kNone ? value.number : evaluate(thread, op, value.expr);
}

std::int64_t Runner::State::evaluate_expr(Thread& thread, const Op& op, const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::number:
      return expr.number;
    case Expr::Kind::variable:
      return thread.loops[static_cast<std::size_t>(expr.number)];
    case Expr::Kind::negate: {
      std::int64_t out = 0;
      if (__builtin_sub_overflow(std::int64_t{0}, evaluate(thread, op, expr.a), &out)) {
        fail(op, expr, "WL_ARITHMETIC", "the number overflows 64 bits");
      }
      return out;
    }
    case Expr::Kind::logical_not:
      return evaluate(thread, op, expr.a) == 0 ? 1 : 0;
    case Expr::Kind::logical_and:
      return evaluate(thread, op, expr.a) != 0 && evaluate(thread, op, expr.b) != 0 ? 1 : 0;
    case Expr::Kind::logical_or:
      return evaluate(thread, op, expr.a) != 0 || evaluate(thread, op, expr.b) != 0 ? 1 : 0;
    case Expr::Kind::uniform:
    case Expr::Kind::choice:
    case Expr::Kind::normal:
    case Expr::Kind::zipf:
      return draw(thread, op, expr);
    case Expr::Kind::inuse:
    case Expr::Kind::memuse:
    case Expr::Kind::requests:
    case Expr::Kind::fails:
    case Expr::Kind::sleeps:
    case Expr::Kind::xdomain:
    case Expr::Kind::size:
    case Expr::Kind::domain:
    case Expr::Kind::is_null:
    case Expr::Kind::free_pages:
      return ask_kernel(thread, op, expr);
    default:
      return binary(thread, op, expr);
  }
}

std::int64_t Runner::State::binary(Thread& thread, const Op& op, const Expr& expr) {
  const std::int64_t a = evaluate(thread, op, expr.a);
  const std::int64_t b = evaluate(thread, op, expr.b);
  std::int64_t out = 0;
  bool overflow = false;
  switch (expr.kind) {
    case Expr::Kind::add:
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case Expr::Kind::subtract:
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case Expr::Kind::multiply:
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case Expr::Kind::divide:
    case Expr::Kind::modulo:
      if (b == 0) fail(op, workload.exprs[expr.b], "WL_ARITHMETIC", "division by zero");
      if (b == -1) {
        overflow = __builtin_sub_overflow(std::int64_t{0}, a, &out);
        if (expr.kind == Expr::Kind::modulo) return 0;
      } else {
        out = expr.kind == Expr::Kind::divide ? a / b : a % b;
      }
      break;
    case Expr::Kind::equal:
      return a == b;
    case Expr::Kind::not_equal:
      return a != b;
    case Expr::Kind::less:
      return a < b;
    case Expr::Kind::less_equal:
      return a <= b;
    case Expr::Kind::greater:
      return a > b;
    default:
      return a >= b;
  }
  if (overflow) fail(op, expr, "WL_ARITHMETIC", "the number overflows 64 bits");
  return out;
}

std::int64_t Runner::State::draw(Thread& thread, const Op& op, const Expr& expr) {
  const auto argument = [&](std::size_t i) { return evaluate(thread, op, expr.args[i]); };
  switch (expr.kind) {
    case Expr::Kind::uniform: {
      const std::int64_t low = argument(0), high = argument(1);
      if (low > high) {
        fail(op, expr, "WL_RANGE",
             "uniform(" + std::to_string(low) + "," + std::to_string(high) + ") has no value");
      }
      const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                       thread.random.below(span + 1));
    }
    case Expr::Kind::choice:
      return argument(static_cast<std::size_t>(thread.random.below(expr.args.size())));
    case Expr::Kind::normal: {
      // The sum of twelve uniform draws: integers only, the same everywhere.
      const std::int64_t mean = argument(0), deviation = argument(1);
      std::int64_t sum = 0;
      for (int i = 0; i < 12; ++i) sum += static_cast<std::int64_t>(thread.random.next() >> 32);
      sum -= std::int64_t{6} << 32;
      const __int128 value = mean + ((static_cast<__int128>(deviation) * sum) >> 32);
      constexpr __int128 kMost = INT64_MAX;
      return static_cast<std::int64_t>(std::clamp<__int128>(value, 0, kMost));
    }
    default: {
      const std::int64_t n = argument(0);
      if (n < 1 || n > kMostZipf) {
        fail(op, expr, "WL_RANGE",
             "zipf(" + std::to_string(n) + "): 1 to 65536 values are possible");
      }
      std::vector<std::uint64_t>& sums = zipf_tables[n];
      if (sums.empty()) {
        std::uint64_t sum = 0;
        for (std::int64_t k = 1; k <= n; ++k) {
          sum += (std::uint64_t{1} << 40) / static_cast<std::uint64_t>(k);
          sums.push_back(sum);
        }
      }
      const std::uint64_t drawn = thread.random.below(sums.back());
      return std::upper_bound(sums.begin(), sums.end(), drawn) - sums.begin() + 1;
    }
  }
}

std::int64_t Runner::State::ask_kernel(Thread& thread, const Op& op, const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::inuse:
    case Expr::Kind::memuse:
    case Expr::Kind::requests: {
      const TypeStats s = kernel.type_stats(*type_of(op, static_cast<Index>(expr.number)));
      return static_cast<std::int64_t>(expr.kind == Expr::Kind::inuse    ? s.numallocs - s.numfrees
                                       : expr.kind == Expr::Kind::memuse ? s.memalloced - s.memfreed
                                                                         : s.numallocs);
    }
    case Expr::Kind::fails:
    case Expr::Kind::sleeps:
    case Expr::Kind::xdomain: {
      const ZoneStats zone = zone_stats_of(op, expr);
      return static_cast<std::int64_t>(expr.kind == Expr::Kind::fails    ? zone.fail
                                       : expr.kind == Expr::Kind::sleeps ? zone.sleep
                                                                         : zone.xdomain);
    }
    case Expr::Kind::size:
      return static_cast<std::int64_t>(kernel.block_size(
          get(thread, op, {static_cast<Index>(expr.number), expr.a, expr.b}).addr));
    case Expr::Kind::domain:
      return page_info(kernel.vm(),
                       get(thread, op, {static_cast<Index>(expr.number), expr.a, expr.b}).addr)
          .domain;
    case Expr::Kind::is_null:
      return get(thread, op, {static_cast<Index>(expr.number), expr.a, expr.b}).addr == nullptr;
    default:
      return static_cast<std::int64_t>(kernel.free_pages());
  }
}

// By the symbol, or of the first zone that has the name.
ZoneStats Runner::State::zone_stats_of(const Op& op, const Expr& expr) const {
  if (expr.a != kNone) {
    if (zones[expr.a] != nullptr) return zone_stats(*zones[expr.a]);
    fail(op, expr, "WL_NO_ZONE",
         "the zone " + workload.zones[expr.a].symbol + " does not exist now");
  }
  const std::string& name = workload.strings[static_cast<std::size_t>(expr.number)];
  for (const ZoneStats& zone : kernel.zones())
    if (zone.name == name) return zone;
  fail(op, expr, "WL_UNKNOWN_ZONE", "there is no zone " + name, near_zones(name));
}

std::string Runner::State::explain(Thread& thread, const Op& op, Index index) {
  const Expr& expr = workload.exprs[index];
  std::string what;
  switch (expr.kind) {
    case Expr::Kind::inuse:
    case Expr::Kind::memuse:
    case Expr::Kind::requests:
      what = expr.kind == Expr::Kind::inuse    ? "inuse("
             : expr.kind == Expr::Kind::memuse ? "memuse("
                                               : "requests(";
      what += workload.types[static_cast<std::size_t>(expr.number)].symbol + ")";
      break;
    case Expr::Kind::fails:
    case Expr::Kind::sleeps:
    case Expr::Kind::xdomain:
      what = std::string(expr.kind == Expr::Kind::fails    ? "fails("
                         : expr.kind == Expr::Kind::sleeps ? "sleeps("
                                                           : "xdomain(") +
             (expr.a != kNone ? workload.zones[expr.a].symbol
                              : workload.strings[static_cast<std::size_t>(expr.number)]) +
             ")";
      break;
    case Expr::Kind::size:
    case Expr::Kind::domain:
    case Expr::Kind::is_null:
      what = std::string(expr.kind == Expr::Kind::size     ? "size("
                         : expr.kind == Expr::Kind::domain ? "domain("
                                                           : "null(") +
             name_of(thread, op, {static_cast<Index>(expr.number), expr.a, expr.b}) + ")";
      break;
    case Expr::Kind::free_pages:
      what = "free_pages";
      break;
    case Expr::Kind::number:
    case Expr::Kind::variable:
    case Expr::Kind::uniform:
    case Expr::Kind::choice:
    case Expr::Kind::normal:
    case Expr::Kind::zipf:
      return {};
    default: {
      std::string left = explain(thread, op, expr.a);
      const std::string right = expr.b == kNone ? std::string() : explain(thread, op, expr.b);
      if (!left.empty() && !right.empty()) left += ", ";
      return left + right;
    }
  }
  return what + " is " + std::to_string(ask_kernel(thread, op, expr));
}

}  // namespace dtmalloc::workload
