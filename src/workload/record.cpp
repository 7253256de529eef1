// SPDX-License-Identifier: BSD-2-Clause
// Records what a run does as a flat trace.
//
// Every number of a statement is evaluated once, here; the statement runs with the values and is
// written when it is done, so that statements stand in the order in which they took effect. What
// takes time and has no effect (loops, waits, starts of threads) is a wait before the next one.
//
// Locking:      none: of the threads of a deterministic machine one runs at a time
// Invariants:   a replay reaches the statement to be written at `time_`, on `cpu_`

#include <algorithm>

#include "workload/runner.hpp"
#include "workload/trace_int.hpp"

namespace dtmalloc::workload {

class Recorder : public OperationLog {
 public:
  Recorder(const Workload& workload, Kernel& kernel, RunHooks hooks, TraceFormat format,
           const TraceSink& sink)
      : workload_(with_scratch(workload)),
        runner_(workload_, kernel, std::move(hooks)),
        clock_(kernel.cpus().clock()),
        cost_(kernel.config().op_cost),
        domains_(kernel.config().domains),
        cpu_(curcpu->id),
        passing_(cpu_),
        writer_(format, sink, workload_, names_) {}

  Result<Outcome> run();
  void operation(Runner::State& state, Thread& thread, const Op& op) override;

 private:
  static constexpr std::size_t kFirst = kMaxDepth + 1;  // of the loop variables: ours

  static Workload with_scratch(const Workload& workload);
  [[noreturn]] void refuse(const Op& op, const std::string& message) const;
  bool draws(Index expr) const;
  Op evaluated(Runner::State& state, Thread& thread, const Op& op);
  void evaluate(Runner::State& state, Thread& thread, const Op& op, BlockRef& ref,
                std::size_t slot);
  void perform(Runner::State& state, Thread& thread, const Op& op);
  void write(const Thread& thread, Op op, int cpu);
  void write_pause(int cpu);
  Index number(const Thread& thread, const BlockRef& ref);

  Workload workload_;
  Runner runner_;
  const Clock& clock_;
  const std::uint64_t cost_;
  const int domains_;
  std::uint64_t time_ = 0;  // what a replay's clock shows behind what is written
  int cpu_;
  int passing_;  // CPU of what passed the time since `time_`
  bool any_ = false;
  std::uint64_t written_ = 0;
  TraceNames names_;
  TraceWriter writer_;
};

// The copy has expressions for values that are evaluated: variables of loops that no loop has.
Workload Recorder::with_scratch(const Workload& workload) {
  Workload copy = workload;
  for (std::size_t i = 0; i < kScratchVariables; ++i) {
    Expr value;
    value.kind = Expr::Kind::variable;
    value.number = static_cast<std::int64_t>(kFirst + i);
    copy.exprs.push_back(value);
  }
  return copy;
}

void Recorder::refuse(const Op& op, const std::string& message) const {
  throw RunError{workload_.diagnose(op, "WL_RECORD", message)};
}

bool Recorder::draws(Index index) const {
  if (index == kNone) return false;
  const Expr& expr = workload_.exprs[index];
  switch (expr.kind) {
    case Expr::Kind::uniform:
    case Expr::Kind::choice:
    case Expr::Kind::normal:
    case Expr::Kind::zipf:
      return true;
    case Expr::Kind::fails:
    case Expr::Kind::sleeps:
    case Expr::Kind::xdomain:
      return false;
    default:
      return draws(expr.a) || draws(expr.b);
  }
}

void Recorder::evaluate(Runner::State& state, Thread& thread, const Op& op, BlockRef& ref,
                        std::size_t slot) {
  for (Index* index : {&ref.first, &ref.second}) {
    if (*index == kNone) continue;
    thread.loops[kFirst + slot] = state.evaluate(thread, op, *index);
    *index = static_cast<Index>(workload_.exprs.size() - kScratchVariables + slot);
    ++slot;
  }
}

// The statement with its values; in the order in which the Runner would have asked for them. Waits
// until the blocks that it uses are set.
Op Recorder::evaluated(Runner::State& state, Thread& thread, const Op& op) {
  Op out = op;
  const auto size = [&](const Value& value, const char* what) {
    return Value{static_cast<std::int64_t>(state.size_value(thread, op, value, what)), kNone};
  };
  const auto number = [&](const Value& value) {
    return Value{state.evaluate(thread, op, value), kNone};
  };
  switch (op.kind) {
    case OpKind::free:
    case OpKind::zfree:
    case OpKind::contigfree:
    case OpKind::uma_zfree:
    case OpKind::poke:
      evaluate(state, thread, op, out.target, 0);
      state.get(thread, out, out.target);
      out.extra = number(op.extra);
      out.value = number(op.value);
      return out;
    case OpKind::realloc:
    case OpKind::reallocf:
      evaluate(state, thread, op, out.source, 2);
      state.get(thread, out, out.source);
      break;
    case OpKind::reclaim:
    case OpKind::cpu:
      out.value = number(op.value);
      return out;
    default:
      break;
  }
  if (op.kind != OpKind::uma_zalloc) out.value = size(op.value, "size");
  if (has_second_number(op.kind))
    out.extra = size(
        op.extra, op.kind == OpKind::malloc_aligned || op.kind == OpKind::malloc_domainset_aligned
                      ? "alignment"
                      : "size");
  evaluate(state, thread, op, out.target, 0);
  return out;
}

void Recorder::operation(Runner::State& state, Thread& thread, const Op& op) {
  switch (op.kind) {
    case OpKind::critical:
    case OpKind::interrupt:
    case OpKind::nosleep:
      refuse(op, "a flat trace carries no critical, interrupt or nosleep");
    case OpKind::thread:
      if (domains_ > 1)
        refuse(op,
               "a flat trace has one thread, and each thread has a round-robin over the domains of "
               "its own");
      [[fallthrough]];
    case OpKind::repeat:
    case OpKind::join:
    case OpKind::wait:
      state.perform(thread, op);
      if (passing_ != curcpu->id) write_pause(passing_);
      passing_ = curcpu->id;
      return;
    case OpKind::expect:
      if (draws(op.value.expr)) refuse(op, "a flat trace carries no expect that draws numbers");
      return perform(state, thread, op);
    case OpKind::type:
    case OpKind::zone:
    case OpKind::zdestroy:
    case OpKind::load:
    case OpKind::unload:
    case OpKind::sysctl:
    case OpKind::history:
      return perform(state, thread, op);
    default:
      return perform(state, thread, evaluated(state, thread, op));
  }
}

void Recorder::perform(Runner::State& state, Thread& thread, const Op& op) {
  if (op.cpu != kSameCpu) state.go_to_own_cpu(thread, op);
  write_pause(passing_);
  const int cpu = curcpu->id;
  const std::uint64_t before = written_;
  const std::uint64_t start = clock_.now();
  try {
    state.perform(thread, op);
  } catch (const KernelPanic&) {  // the replay panics here, too
    if (written_ == before) write(thread, op, cpu);
    throw;
  }
  if (written_ != before)
    refuse(op, "a flat trace carries no operation in which another thread goes on");
  write(thread, op, cpu);
  time_ += clock_.now() - start + cost_;
  passing_ = curcpu->id;
}

// The time that a replay is behind.
void Recorder::write_pause(int cpu) {
  const std::uint64_t now = clock_.now();
  if (now < time_ + std::max<std::uint64_t>(cost_, 1)) return;
  const bool moves = cpu != cpu_;
  any_ = true;
  cpu_ = cpu;
  writer_.operation(
      make_trace_op(TraceOp::wait, 0, moves ? static_cast<std::uint16_t>(cpu) : kSameCpu,
                    now - time_ - cost_),
      kNone);
  time_ = now;
}

Index Recorder::number(const Thread& thread, const BlockRef& ref) {
  const NameDecl& name = workload_.names[ref.name];
  const auto value = [&](Index index) {
    return index == kNone ? 0
                          : thread.loops[static_cast<std::size_t>(workload_.exprs[index].number)];
  };
  return names_.number(name.text, name.arity, value(ref.first), value(ref.second));
}

void Recorder::write(const Thread& thread, Op op, int cpu) {
  ++written_;
  if (op.kind == OpKind::cpu) {
    cpu_ = static_cast<int>(op.value.number);
    any_ = true;
    return writer_.operation(
        make_trace_op(TraceOp::move, 0, static_cast<std::uint16_t>(op.value.number), 0), kNone);
  }
  const bool has_cpu = op.target.name != kNone;
  op.cpu = cpu != cpu_ && has_cpu ? static_cast<std::uint16_t>(cpu) : kSameCpu;
  const auto add = [this](TraceOp extra) {  // that the run has not
    writer_.operation(extra, kNone);
    time_ += cost_;
  };
  if (cpu != cpu_ && !has_cpu)
    add(make_trace_op(TraceOp::move, 0, static_cast<std::uint16_t>(cpu), 0));
  cpu_ = cpu;
  // The first statement ends boot.
  if (!any_ && (op.kind == OpKind::type || op.kind == OpKind::zone))
    add(make_trace_op(TraceOp::wait, 0, kSameCpu, 0));
  any_ = true;
  const auto size = static_cast<std::uint64_t>(op.value.number);
  if (op.kind == OpKind::malloc && size <= TraceOp::kSizeMask) {
    return writer_.operation(make_trace_op(TraceOp::malloc, number(thread, op.target), op.cpu,
                                           trace_word(size, op.type), to_trace_flags(op.flags)),
                             op.site);
  }
  if (op.kind == OpKind::free && op.extra.number == 0) {
    return writer_.operation(
        make_trace_op(TraceOp::free, number(thread, op.target), op.cpu,
                      trace_word(0, op.type == kNone ? TraceOp::kNoType : op.type)),
        op.site);
  }
  for (const BlockRef* ref : {&op.source, &op.target})
    if (ref->name != kNone) number(thread, *ref);
  std::vector<std::string> loops;
  for (const std::int64_t value : thread.loops) loops.push_back(std::to_string(value));
  writer_.statement(op, print_statement(workload_, op, std::move(loops)));
}

Result<Outcome> Recorder::run() {
  if (clock_.is_real()) {
    Diagnostic d;
    d.tag = "WL_RECORD";
    d.where.file = workload_.file;
    d.message = "a run on the host's clock cannot be recorded";
    d.expected = "clock=virtual";
    return d;
  }
  if (auto booted = runner_.boot(); !booted) return booted.error();
  Workload head = workload_;
  head.bodies[0].resize(head.boot_statements());
  writer_.head(head);
  runner_.state_->use_log(*this);
  Outcome outcome = runner_.run();
  if (outcome.error) return outcome;
  if (!outcome.panic) write_pause(passing_);
  writer_.end();
  return outcome;
}

Result<Outcome> record(const Workload& workload, Kernel& kernel, RunHooks hooks, TraceFormat format,
                       const TraceSink& sink) {
  return Recorder(workload, kernel, std::move(hooks), format, sink).run();
}

}  // namespace dtmalloc::workload
