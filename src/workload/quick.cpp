// SPDX-License-Identifier: BSD-2-Clause
// Bodies that are run over and over.
// Locking:      see runner.hpp
// Invariants:   QuickOps do what step() does with their statements, in the same order

#include "workload/runner.hpp"

namespace dtmalloc::workload {
namespace {

bool is_plain(const Op& op) { return op.target.first == kNone && op.cpu == kSameCpu; }

}  // namespace

const std::vector<QuickOp>& Runner::State::prepare(Index body) {
  std::vector<QuickOp>& out = quick[body];
  if (!out.empty()) return out;
  out.reserve(workload.bodies[body].size());
  for (const Op& op : workload.bodies[body]) {
    QuickOp& quick_op = out.emplace_back(QuickOp{.op = &op});
    if (!is_plain(op)) continue;
    quick_op.site = op.site;
    quick_op.line = op.line;
    if (op.kind == OpKind::malloc && op.value.expr == kNone && types[op.type] != nullptr) {
      quick_op.kind = QuickOp::Kind::malloc;
      quick_op.mtp = types[op.type];
      quick_op.size = static_cast<std::uint64_t>(op.value.number);
      quick_op.type = op.type;
      quick_op.flags = op.flags;
      quick_op.slot = &names[op.target.name].scalar;
    } else if (op.kind == OpKind::free && op.type == kNone && op.extra.number == 0 &&
               op.extra.expr == kNone) {
      quick_op.kind = QuickOp::Kind::free;
      quick_op.slot = &names[op.target.name].scalar;
    }
  }
  return out;
}

// Requires: nothing is unusual, so that nobody waits for the block.
DTM_RUN_INLINE void Runner::State::quick_malloc(Thread& thread, const QuickOp& q) {
  set_site(thread, q.line, q.site);
  Slot& slot = *q.slot;
  slot.addr = malloc_function(q.size, q.mtp, q.flags);
  slot.type = q.type;
  if (owners != nullptr) {
    const std::uint64_t time = clock.now();
    if (slot.addr != nullptr)
      owners->allocated(slot.owner, slot.addr, q.size, {q.op, operations, time, thread.where});
    else
      owners->forget(slot.owner);
  }
  ++operations;
  after_usual();
}

DTM_RUN_INLINE void Runner::State::quick_free(Thread& thread, const QuickOp& q) {
  // A slot that is not set, or a zone's.
  const Slot& slot = *q.slot;
  if (slot.type >= kUnset) return step(thread, *q.op);
  set_site(thread, q.line, q.site);
  Owners::Entry* const ends = ending(slot, slot.type);
  free_function(slot.addr, types[slot.type]);
  if (ends != nullptr) {
    const std::uint64_t time = clock.now();
    ends->freed = {q.op, operations, time, thread.where};
  }
  ++operations;
  after_usual();
}

void Runner::State::repeat(Thread& thread, const Op& op) {
  const std::int64_t count = count_of(op, evaluate(thread, op, op.value));
  const std::vector<QuickOp>& body = prepare(op.body);
  std::int64_t& variable = thread.loops[static_cast<std::size_t>(thread.depth++)];
  const QuickOp* const begin = body.data();
  const QuickOp* const end = begin + body.size();
  for (std::int64_t i = 0; i < count; ++i) {
    variable = i;
    // An empty body must not keep the run from being ended.
    if (begin == end) after_operation();
    for (const QuickOp* q = begin; q != end; ++q) {
      if (unusual == 0 && q->kind == QuickOp::Kind::malloc)
        quick_malloc(thread, *q);
      else if (unusual == 0 && q->kind == QuickOp::Kind::free)
        quick_free(thread, *q);
      else
        step(thread, *q->op);
    }
  }
  --thread.depth;
}

}  // namespace dtmalloc::workload
