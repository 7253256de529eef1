// SPDX-License-Identifier: BSD-2-Clause
// From the entries of the owners to a ledger.
// Locking:      see runner.hpp

#include "workload/owners.hpp"

#include <algorithm>

#include "kern/ledger_start.hpp"
#include "workload/runner.hpp"

namespace dtmalloc::workload {

bool owners_suffice(const KernelConfig& config) {
  return !config.ledger && !config.invariants && !config.redzone && !config.memguard;
}

Owners::Entry* Owners::add() {
  if (!spare_.empty()) {
    Entry* const entry = spare_.back();
    spare_.pop_back();
    return entry;
  }
  if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Entry[]>(kChunk));
  return &chunks_.back()[size_++ % kChunk];
}

void Runner::State::keep_owners() {
  if (!hooks.keep_owners || !owners_suffice(kernel.config())) return;
  owners = std::make_unique<Owners>();
  enter_actor(main);
}

void Runner::State::enter_actor(Thread& thread) {
  thread.where.cpu = curcpu->id;
  if (owners == nullptr) return;
  thread.where.actor = static_cast<std::uint32_t>(owners->actors.size());
  owners->actors.emplace_back(thread.self->execname, thread.self->tid);
}

// After a realloc of what `source`, a copy of `old`, held.
void Runner::State::reallocated(Thread& thread, const Op& op, Slot& source, const Slot& old,
                                void* addr, std::uint64_t request) {
  Owners::Entry& was = *old.owner;
  if (addr == old.addr) {  // in place: the entry goes where the address goes
    was.request = request;
    source.owner = nullptr;
    owners->move(set(thread, op, addr, op.type).owner, old.owner);
    return;
  }
  if (addr == nullptr) {
    if (op.kind == OpKind::reallocf) was.freed = event(thread, op);
    return put(thread, op, addr, request);
  }
  const Owners::Event allocated = event(thread, op);
  const bool lost = !was.lives() || was.addr != old.addr;
  if (!lost) was.freed = event(thread, op);
  owners->allocated(set(thread, op, addr, op.type).owner, addr, request, allocated);
  if (!lost) return;
  // Somebody freed it while the kernel waited for memory: the second free was this one's.
  begin_ledger();
  kernel.impl().ledger->impl().freeing(types[op.type], old.addr);
}

void Runner::State::begin_ledger() {
  if (owners == nullptr) return;
  const std::unique_ptr<Owners> known = std::move(owners);
  LedgerStart start(kernel, LedgerConfig{});
  for (std::size_t i = 0; i < workload.boot_statements(); ++i) {
    const Op& op = workload.bodies[0][i];
    if (op.kind != OpKind::history) continue;
    const History& h = workload.histories[op.detail];
    start.manual(*types[op.type],
                 static_cast<std::int64_t>(h.allocs.value_or(0) - h.frees.value_or(0)),
                 static_cast<std::int64_t>(h.memalloced.value_or(0) - h.memfreed.value_or(0)));
  }
  std::vector<const Owners::Entry*> live, past;
  known->for_each(
      [&](const Owners::Entry& entry) { (entry.lives() ? live : past).push_back(&entry); });
  std::sort(live.begin(), live.end(),
            [](const auto* a, const auto* b) { return a->allocated.order < b->allocated.order; });
  std::sort(past.begin(), past.end(),
            [](const auto* a, const auto* b) { return a->freed.order < b->freed.order; });
  std::vector<std::uint32_t> names;
  for (const Owners::Actor& actor : known->actors) names.push_back(start.name(actor.first));
  std::unordered_map<const Op*, std::uint32_t> stacks;
  const auto place = [&](const Owners::Event& event) {
    const auto [known_stack, is_new] = stacks.try_emplace(event.op);
    if (is_new) {
      SimThread at;
      at.line = event.op->line;
      if (event.op->site != kNone) at.call_sites = workload.sites[event.op->site];
      known_stack->second = start.stack(at);
    }
    LedgerStart::Place out;
    out.sequence = event.order + 1;
    out.time = event.time;
    out.stack = known_stack->second;
    out.execname = names[event.where.actor];
    out.cpu = event.where.cpu;
    out.tid = known->actors[event.where.actor].second;
    return out;
  };
  for (const Owners::Entry* entry : live)
    start.lives(entry->addr, *types[entry->type()], entry->request, place(entry->allocated));
  for (const Owners::Entry* entry : past)
    start.freed(entry->addr, *types[entry->type()], entry->request, place(entry->allocated),
                place(entry->freed));
  start.finish(operations + 1);
}

void Runner::begin_ledger() { state_->begin_ledger(); }

}  // namespace dtmalloc::workload
