// SPDX-License-Identifier: BSD-2-Clause
// A workload as text: the inverse of the parser.

#include <algorithm>
#include <cctype>
#include <dtmalloc/workload/workload.hpp>

#include "workload/parser.hpp"

namespace dtmalloc::workload {
namespace {

std::string quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A word where one is enough.
std::string plain_or_quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '.' || c == '-' || c == '+';
  });
  return plain ? text : quoted(text);
}

class Printer {
 public:
  explicit Printer(const Workload& workload, std::vector<std::string> loops = {})
      : w_(workload), loops_(std::move(loops)) {}

  std::string one(const Op& op) {
    statement(op, 0);
    return std::move(out_);
  }

  std::string all() {
    kernel();
    body(w_.bodies.at(0), 0);
    return std::move(out_);
  }

 private:
  void kernel() {
    const KernelSettings& k = w_.kernel;
    if (k == KernelSettings{}) return;
    out_ += "kernel";
    if (k.release) out_ += " release=" + std::to_string(*k.release);
    if (k.cpus) out_ += " cpus=" + std::to_string(*k.cpus);
    if (k.domains) out_ += " domains=" + std::to_string(*k.domains);
    if (k.mem) out_ += " mem=" + print_size(*k.mem);
    if (k.seed) out_ += " seed=" + std::to_string(*k.seed);
    if (k.op_cost) out_ += " cost=" + print_time(*k.op_cost);
    if (k.real_clock) out_ += *k.real_clock ? " clock=real" : " clock=virtual";
    if (!k.options.empty()) out_ += " config=" + k.options;
    const auto option = [&](const char* name, const std::optional<bool>& on) {
      if (on) out_ += ' ' + std::string(name) + (*on ? "" : "=0");
    };
    option("invariants", k.invariants);
    option("redzone", k.redzone);
    option("memguard", k.memguard);
    option("make_failures", k.make_failures);
    if (k.maxzones) out_ += " maxzones=" + std::to_string(*k.maxzones);
    for (const Tunable& tunable : k.tunables)
      out_ += ' ' + tunable.name + '=' + plain_or_quoted(tunable.value);
    if (k.ledger) ledger(*k.ledger);
    for (std::size_t i = 0; i < k.classes.size(); ++i) {
      out_ += (i == 0 ? " classes=" : ",") + std::to_string(k.classes[i]);
    }
    if (!k.capture.empty()) out_ += " capture=" + k.capture;
    out_ += '\n';
  }

  void ledger(const LedgerConfig& bounds) {
    out_ += " ledger";
    for (const auto& [key, member] : kLedgerBounds)
      if (bounds.*member != LedgerConfig{}.*member)
        out_ += " " + std::string(key) + "=" + std::to_string(bounds.*member);
  }

  void body(const std::vector<Op>& ops, int indent) {
    for (const Op& op : ops) {
      out_.append(static_cast<std::size_t>(2 * indent), ' ');
      statement(op, indent);
      out_ += '\n';
    }
  }

  void block(const Op& op, int indent) {
    out_ += " {\n";
    body(w_.bodies[op.body], indent + 1);
    out_.append(static_cast<std::size_t>(2 * indent), ' ');
    out_ += '}';
  }

  void statement(const Op& op, int indent) {
    switch (op.kind) {
      case OpKind::type: {
        const TypeDecl& type = w_.types[op.type];
        out_ += "type " + type.symbol + ' ' + quoted(type.shortdesc);
        if (!type.longdesc.empty()) out_ += ' ' + quoted(type.longdesc);
        break;
      }
      case OpKind::history:
        history(op);
        break;
      case OpKind::cpu:
        out_ += "cpu ";
        value(op.value, Context::plain);
        break;
      case OpKind::free:
      case OpKind::zfree:
      case OpKind::contigfree:
        out_ += op.kind == OpKind::free    ? "free "
                : op.kind == OpKind::zfree ? "zfree "
                                           : "contigfree ";
        ref(op.target);
        offset(op.extra);
        if (op.type != kNone) out_ += ' ' + w_.types[op.type].symbol;
        site(op);
        break;
      case OpKind::repeat:
        out_ += "repeat ";
        value(op.value, Context::size);
        if (op.detail != kNone) out_ += " as " + w_.strings[op.detail];
        loops_.push_back(op.detail == kNone ? std::string() : w_.strings[op.detail]);
        block(op, indent);
        loops_.pop_back();
        break;
      case OpKind::wait:
        out_ += "wait ";
        value(op.value, Context::time);
        site(op);
        break;
      case OpKind::thread:
        thread(op);
        block(op, indent);
        break;
      case OpKind::join:
        out_ += "join";
        break;
      case OpKind::unload:
      case OpKind::load:
        out_ += (op.kind == OpKind::load ? "load " : "unload ") + w_.types[op.type].symbol;
        break;
      case OpKind::expect:
        out_ += "expect ";
        value(op.value, Context::condition);
        break;
      case OpKind::critical:
      case OpKind::interrupt:
      case OpKind::nosleep:
        out_ += op.kind == OpKind::critical    ? "critical"
                : op.kind == OpKind::interrupt ? "interrupt"
                                               : "nosleep";
        block(op, indent);
        break;
      case OpKind::reclaim:
        reclaim(op);
        break;
      case OpKind::zone:
        zone(w_.zones[op.detail]);
        break;
      case OpKind::uma_zfree:
        out_ += "uma_zfree " + w_.zones[op.detail].symbol + ' ';
        ref(op.target);
        site(op);
        break;
      case OpKind::zdestroy:
        out_ += "zdestroy " + w_.zones[op.detail].symbol;
        break;
      case OpKind::sysctl: {
        const SysctlDecl& sysctl = w_.sysctls[op.detail];
        out_ += "sysctl " + sysctl.name;
        if (sysctl.value) out_ += '=' + plain_or_quoted(*sysctl.value);
        break;
      }
      case OpKind::poke:
        out_ += "poke ";
        ref(op.target);
        offset(op.extra);
        out_ += ' ';
        second_value(op.value);
        site(op);
        break;
      default:
        assignment(op);
    }
  }

  void offset(const Value& by) {
    if (by.number == 0 && by.expr == kNone) return;
    if (by.expr != kNone || by.number > 0) out_ += '+';
    value(by, Context::size);
  }

  void reclaim(const Op& op) {
    out_ += "reclaim ";
    for (const FlagName& how : kReclaimNames)
      if (how.bit == op.flags) out_ += how.name;
    if (op.detail != kNone) out_ += " zone=" + quoted(w_.strings[op.detail]);
    if (op.extra.number == 0) return;
    out_ += " domain=";
    value(op.value, Context::plain);
  }

  void zone(const ZoneDecl& z) {
    out_ += "zone " + z.symbol + ' ' + quoted(z.name) + " size=" + std::to_string(z.size);
    if (z.align != 0) out_ += " align=" + std::to_string(z.align);
    if (z.limit != 0) out_ += " limit=" + std::to_string(z.limit);
    bool first = true;
    for (const FlagName& flag : kZoneFlagNames) {
      if ((z.flags & static_cast<std::uint32_t>(flag.bit)) == 0) continue;
      out_ += (first ? " flags=" : "|") + std::string(flag.name);
      first = false;
    }
    if (!z.warning.empty()) out_ += " warning=" + quoted(z.warning);
  }

  // A number behind another one, which a leading minus would continue.
  void second_value(const Value& v) {
    const bool minus = v.expr != kNone && leads_with_minus(v.expr);
    if (minus) out_ += '(';
    value(v, Context::size);
    if (minus) out_ += ')';
  }

  void assignment(const Op& op) {
    ref(op.target);
    out_ += " = ";
    for (const OperationName& name : kAssigning) {
      if (name.kind == op.kind) out_ += name.name;
    }
    out_ += ' ';
    if (op.kind == OpKind::uma_zalloc) {
      out_ += w_.zones[op.detail].symbol + ' ';
      flags(op);
      return site(op);
    }
    if (op.kind == OpKind::realloc || op.kind == OpKind::reallocf) {
      ref(op.source);
      out_ += ' ';
    }
    value(op.value, Context::size);
    if (has_second_number(op.kind)) {
      out_ += ' ';
      second_value(op.extra);
    }
    const Placement* placement = op.detail == kNone ? nullptr : &w_.placements[op.detail];
    if (has_domain_set(op.kind)) out_ += ' ' + print_domain_set(*placement);
    out_ += ' ' + w_.types[op.type].symbol + ' ';
    flags(op);
    if (placement != nullptr) address_range(*placement);
    site(op);
  }

  void flags(const Op& op) {
    bool first = true;
    for (const FlagName& flag : kFlagNames) {
      if ((op.flags & flag.bit) == 0) continue;
      if (!first) out_ += '|';
      out_ += flag.name;
      first = false;
    }
  }

  void address_range(const Placement& p) {
    const auto put = [&](const char* key, const std::optional<std::uint64_t>& bytes) {
      if (bytes) out_ += ' ' + std::string(key) + '=' + std::to_string(*bytes);
    };
    put("low", p.low);
    put("high", p.high);
    put("align", p.align);
    put("boundary", p.boundary);
  }

  void history(const Op& op) {
    const History& h = w_.histories[op.detail];
    out_ += "history " + w_.types[op.type].symbol;
    const auto put = [&](const char* key, const std::optional<std::uint64_t>& number) {
      if (number) out_ += ' ' + std::string(key) + '=' + std::to_string(*number);
    };
    put("allocs", h.allocs);
    put("memalloced", h.memalloced);
    put("frees", h.frees);
    put("memfreed", h.memfreed);
    for (std::size_t i = 0; i < h.sizes.size(); ++i) {
      out_ += (i == 0 ? " sizes=" : ",") + std::to_string(h.sizes[i]);
    }
  }

  void thread(const Op& op) {
    const ThreadDecl& t = w_.threads[op.detail];
    out_ += "thread " + quoted(t.name);
    const auto put = [&](const char* key, const std::optional<Value>& number) {
      if (!number) return;
      out_ += ' ' + std::string(key) + '=';
      value(*number, Context::plain);
    };
    put("cpu", t.cpu);
    if (!t.execname.empty()) out_ += " execname=" + quoted(t.execname);
    put("pid", t.pid);
    put("ppid", t.ppid);
    put("tid", t.tid);
    put("uid", t.uid);
    put("gid", t.gid);
  }

  // The end of an operation: its CPU and its call sites.
  void site(const Op& op) {
    if (op.cpu != kSameCpu) out_ += " cpu=" + std::to_string(op.cpu);
    if (op.site == kNone) return;
    const auto& frames = w_.sites[op.site];
    for (std::size_t i = 0; i < frames.size(); ++i) out_ += (i == 0 ? " @" : ";") + frames[i];
  }

  void ref(const BlockRef& ref) {
    out_ += w_.names[ref.name].text;
    if (ref.first == kNone) return;
    out_ += '[';
    expr(ref.first, Context::plain, 0);
    if (ref.second != kNone) {
      out_ += ',';
      expr(ref.second, Context::plain, 0);
    }
    out_ += ']';
  }

  void number(std::int64_t n, Context context) {
    out_ +=
        context == Context::time ? print_time(static_cast<std::uint64_t>(n)) : std::to_string(n);
  }

  void value(const Value& v, Context context) {
    if (v.expr == kNone) {
      number(v.number, context);
    } else {
      expr(v.expr, context, 0);
    }
  }

  bool leads_with_minus(Index index) const {
    const Expr& e = w_.exprs[index];
    if (e.kind == Expr::Kind::negate) return true;
    return e.kind >= Expr::Kind::add && e.kind <= Expr::Kind::logical_or && leads_with_minus(e.a);
  }

  void binary(const Expr& e, const char* op, int level, Context context, int above) {
    const bool parentheses = level < above;
    if (parentheses) out_ += '(';
    expr(e.a, context, level);
    out_ += op;
    expr(e.b, context, level + 1);
    if (parentheses) out_ += ')';
  }

  void call(const Expr& e, const char* name, Context context) {
    out_ += name;
    for (std::size_t i = 0; i < e.args.size(); ++i) {
      out_ += i == 0 ? '(' : ',';
      expr(e.args[i], context, 4);
    }
    out_ += ')';
  }

  void expr(Index index, Context context, int above) {
    using Kind = Expr::Kind;
    const Expr& e = w_.exprs[index];
    switch (e.kind) {
      case Kind::number:
        return number(e.number, context);
      case Kind::variable:
        out_ += loops_[static_cast<std::size_t>(e.number)];
        return;
      case Kind::negate:
      case Kind::logical_not:
        out_ += e.kind == Kind::negate ? '-' : '!';
        return expr(e.a, context, 6);
      case Kind::logical_or:
        return binary(e, " || ", 0, context, above);
      case Kind::logical_and:
        return binary(e, " && ", 1, context, above);
      case Kind::equal:
        return binary(e, " == ", 2, context, above);
      case Kind::not_equal:
        return binary(e, " != ", 2, context, above);
      case Kind::less:
        return binary(e, " < ", 3, context, above);
      case Kind::less_equal:
        return binary(e, " <= ", 3, context, above);
      case Kind::greater:
        return binary(e, " > ", 3, context, above);
      case Kind::greater_equal:
        return binary(e, " >= ", 3, context, above);
      case Kind::add:
        return binary(e, "+", 4, context, above);
      case Kind::subtract:
        return binary(e, "-", 4, context, above);
      case Kind::multiply:
        return binary(e, "*", 5, context, above);
      case Kind::divide:
        return binary(e, "/", 5, context, above);
      case Kind::modulo:
        return binary(e, "%", 5, context, above);
      case Kind::uniform:
        return call(e, "uniform", context);
      case Kind::choice:
        return call(e, "choice", context);
      case Kind::normal:
        return call(e, "normal", context);
      case Kind::zipf:
        return call(e, "zipf", context);
      case Kind::inuse:
      case Kind::memuse:
      case Kind::requests:
        out_ += e.kind == Kind::inuse ? "inuse(" : e.kind == Kind::memuse ? "memuse(" : "requests(";
        out_ += w_.types[static_cast<std::size_t>(e.number)].symbol + ')';
        return;
      case Kind::fails:
      case Kind::sleeps:
      case Kind::xdomain:
        out_ += e.kind == Kind::fails ? "fails(" : e.kind == Kind::sleeps ? "sleeps(" : "xdomain(";
        out_ += e.a != kNone ? w_.zones[e.a].symbol
                             : quoted(w_.strings[static_cast<std::size_t>(e.number)]);
        out_ += ')';
        return;
      case Kind::size:
      case Kind::is_null:
      case Kind::domain:
        out_ += e.kind == Kind::size ? "size(" : e.kind == Kind::domain ? "domain(" : "null(";
        ref({static_cast<Index>(e.number), e.a, e.b});
        out_ += ')';
        return;
      case Kind::free_pages:
        out_ += "free_pages";
        return;
    }
  }

  const Workload& w_;
  std::string out_;
  std::vector<std::string> loops_;
};

}  // namespace

std::string print(const Workload& workload) { return Printer(workload).all(); }

std::string print_statement(const Workload& workload, const Op& op,
                            std::vector<std::string> loops) {
  return Printer(workload, std::move(loops)).one(op);
}

}  // namespace dtmalloc::workload
