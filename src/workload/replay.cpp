// SPDX-License-Identifier: BSD-2-Clause
// Runs traces. The operations that traces are made of are done here, one after another on the CPUs
// of one thread; every other statement, and every mistake, is the Runner's.
//
// Locking:      none: the machine has one thread
// Invariants:   a block that a statement of the Runner's uses is the same here and there while it
//               runs

#include <algorithm>
#include <dtmalloc/kern/inline.hpp>

#include "smp/cpu_hold.hpp"
#include "workload/runner.hpp"
#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::uint64_t kLookEvery = kLookMask + 1;  // operations

struct Block {
  void* addr = nullptr;
  Index type = kUnset;  // as a Slot's
};

}  // namespace

struct Replayer::Impl {
  Impl(Trace& t, Runner& runner)
      : trace(t.impl()),
        state(*runner.state_),
        self(*state.main.self),
        virtual_clock(!state.clock.is_real()) {}

  void all();
  void batch(const Batch& batch);
  std::size_t run(const Batch& batch, std::size_t from, std::size_t to);
  template <bool Ticks>
  void take_time(Clock& clock, std::uint64_t cost);
  template <bool Ticks, bool Lines, TraceOp::Kind Most>
  std::size_t run_ops(const Batch& batch, std::size_t from, std::size_t to);
  void other(const Batch& batch, std::size_t at);
  void statement(const Op& op);
  void look_around();
  void use_site(Index s) {
    if (state.main.site != s) state.change_site(state.main, s);
  }
  void refresh();

  Trace::Impl& trace;
  Runner::State& state;
  SimThread& self;
  const bool virtual_clock;
  CpuHold* hold = nullptr;
  // In force: of the operations that follow. The thread's own is another one while a record runs
  // that has none.
  Index site = kNone;
  std::vector<Block> blocks;
  std::uint64_t look = kLookEvery;  // operations until the next look
};

Replayer::Replayer(Trace& trace, Runner& runner) : impl_(std::make_unique<Impl>(trace, runner)) {}
Replayer::~Replayer() = default;

// What statements have declared since the last time.
void Replayer::Impl::refresh() {
  const Workload& w = state.workload;
  while (state.types.size() < w.types.size()) state.types.push_back(nullptr);
  state.zones.resize(w.zones.size(), nullptr);
  state.names.resize(w.names.size());
  if (blocks.size() < trace.names.size()) blocks.resize(trace.names.size());
}

// The time of an operation passes.
template <bool Ticks>
DTM_RUN_INLINE void Replayer::Impl::take_time(Clock& clock, std::uint64_t cost) {
  if constexpr (Ticks) {
    if (!clock.advance(cost)) state.attend();
  } else {
    clock.run_due();
  }
}

// A statement in full, on the blocks of the trace.
void Replayer::Impl::statement(const Op& op) {
  refresh();
  trace.for_each_block(op, [&](const BlockRef& ref) {
    const Block& block = blocks[trace.block_number(ref).value()];
    if (block.type != kUnset) state.bring(state.main, op, ref, block.addr, block.type);
  });
  state.perform(state.main, op);
  if (op.target.name == kNone) return;
  if (const Slot* slot = state.find(state.main, op, op.target))
    blocks[trace.block_number(op.target).value()] = {slot->addr, slot->type};
}

// The operations up to `to`, or to the first one that is none of these: its place is returned.
// Ticks: the clock is virtual; Lines: they stand in a text; Most: the last kind that is done here.
template <bool Ticks, bool Lines, TraceOp::Kind Most>
std::size_t Replayer::Impl::run_ops(const Batch& batch, std::size_t from, std::size_t to) {
  const TraceOp* const ops = batch.ops.data();
  const TracePlace* const places = batch.places.data();
  Block* const blocks_at = blocks.data();
  malloc_type* const* const types = state.types.data();
  const std::int32_t* const flags = trace_flag_table();
  Cpu* const* const cpus = hold->cpus();
  const auto cpu_count = static_cast<unsigned>(hold->count());
  const std::uint64_t cost = state.op_cost;
  Clock& clock = state.clock;
  std::size_t i = from;
  struct Count {  // also when something is thrown
    Impl& impl;
    const std::size_t from;
    const std::size_t& i;
    ~Count() {
      impl.state.operations += i - from;
      impl.look -= i - from;
    }
  } count{*this, from, i};
  while (i < to) {
    const TraceOp& op = ops[i];
    const unsigned kind = op.kind();
    if (kind > Most) break;
    if (op.cpu != kSameCpu) {
      if (op.cpu >= cpu_count) break;
      curcpu = cpus[op.cpu];
    }
    self.line = Lines ? places[i].line : batch.line + static_cast<std::uint32_t>(i);
    if (kind == TraceOp::malloc) {
      const Index type = op.type();
      malloc_type* const mtp = types[type];
      if (mtp == nullptr) break;
      blocks_at[op.block] = {inline_malloc(op.size(), mtp, flags[op.flags()]), type};
    } else if (kind == TraceOp::free) {
      const Block block = blocks_at[op.block];
      const Index type = op.type() == TraceOp::kNoType ? block.type : op.type();
      if (block.type == kUnset || type == kNone) break;
      malloc_type* const mtp = types[type];
      if (mtp == nullptr) break;
      inline_free(block.addr, mtp);
    }
    ++i;
    take_time<Ticks>(clock, cost);
  }
  return i;
}

std::size_t Replayer::Impl::run(const Batch& batch, std::size_t from, std::size_t to) {
  constexpr auto move = TraceOp::move, free = TraceOp::free;
  if (!batch.places.empty())
    return virtual_clock ? run_ops<true, true, move>(batch, from, to)
                         : run_ops<false, true, move>(batch, from, to);
  // A record that moves the thread has no call site; of a text the reader sees to that.
  if (site != kNone)
    return virtual_clock ? run_ops<true, false, free>(batch, from, to)
                         : run_ops<false, false, free>(batch, from, to);
  return virtual_clock ? run_ops<true, false, move>(batch, from, to)
                       : run_ops<false, false, move>(batch, from, to);
}

// What run_ops() leaves: an operation that is rarer, or cannot be.
void Replayer::Impl::other(const Batch& batch, std::size_t at) {
  const TraceOp& op = batch.ops[at];
  Clock& clock = state.clock;
  self.line = batch.line_of(at);
  if (op.kind() == TraceOp::wait && op.cpu == kSameCpu && virtual_clock &&
      clock.can_advance(op.word) && clock.now() + op.word < clock.next_due()) {
    if (batch.places.empty()) use_site(kNone);
    clock.advance(op.word);
    return;
  }
  try {
    if (op.kind() == kOtherStatement) {
      trace.stand_at(batch, at, site);
      site = batch.others[op.block].site;
      statement(batch.others[op.block]);
    } else {  // the Runner says why not
      statement(trace.statement_of(batch, at, site));
    }
  } catch (ParseError& error) {
    throw RunError{trace.placed(std::move(error.diagnostic), batch, at)};
  } catch (RunError& error) {
    throw RunError{trace.placed(std::move(error.diagnostic), batch, at)};
  }
}

void Replayer::Impl::look_around() {
  if (look == 0) {
    look = kLookEvery;
    if (state.clock.interrupted()) state.attend();
  }
  const std::atomic<bool>* attention = state.hooks.attention;
  if (attention != nullptr && attention->load(std::memory_order_relaxed)) state.attend();
}

void Replayer::Impl::batch(const Batch& batch) {
  refresh();
  const std::size_t count = batch.ops.size();
  for (std::size_t at = 0; at < count;) {
    use_site(site);
    const std::size_t to = std::min<std::size_t>(count, at + look);
    at = run(batch, at, to);
    if (at == to) {
      look_around();
      continue;
    }
    const TraceOp& op = batch.ops[at];
    if (op.kind() == TraceOp::site) {
      site = op.block == 0 ? kNone : op.block - 1;
      ++at;
      continue;
    }
    other(batch, at);
    ++at;
    ++state.operations;
    --look;
    if (virtual_clock)
      take_time<true>(state.clock, state.op_cost);
    else
      take_time<false>(state.clock, state.op_cost);
    look_around();
  }
}

void Replayer::Impl::all() {
  CpuHold held(state.cpus);
  hold = &held;
  while (true) {
    const Batch& read = trace.next();
    batch(read);
    if (read.error) throw RunError{*read.error};
    if (read.last) return;
  }
}

Outcome Replayer::run() {
  return impl_->state.guarded([this] { impl_->all(); });
}

void* Replayer::block(std::string_view name) const {
  const auto number = impl_->trace.names.find(name);
  return number && *number < impl_->blocks.size() ? impl_->blocks[*number].addr : nullptr;
}

bool Replayer::is_set(std::string_view name) const {
  const auto number = impl_->trace.names.find(name);
  return number && *number < impl_->blocks.size() && impl_->blocks[*number].type != kUnset;
}

}  // namespace dtmalloc::workload
