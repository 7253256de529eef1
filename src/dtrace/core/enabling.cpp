// SPDX-License-Identifier: BSD-2-Clause
// Enablings: C++ callbacks, and the chains that firings read.
// Counterpart:  dtrace.c (dtrace_ecb_enable, dtrace_ecb_disable, dtrace_enabling_*)
// Locking:      Framework::Impl::mutex. A chain is immutable once published; the one it replaces is
//               freed after CpuSet::synchronize(), when no CPU can still be reading it.
#include <algorithm>
#include <cstddef>
#include <new>

#include "dtrace/core/consumer.hpp"
#include "dtrace/core/framework.hpp"

namespace dtmalloc::dtrace {

Chain* Chain::make(ProbeId id, const std::vector<ChainEntry>& entries, std::uint32_t& numbers) {
  const std::size_t bytes = offsetof(Chain, entries) + entries.size() * sizeof(ChainEntry);
  auto* chain = static_cast<Chain*>(::operator new(std::max(bytes, sizeof(Chain))));
  chain->count = static_cast<std::uint32_t>(entries.size());
  std::uninitialized_copy(entries.begin(), entries.end(), chain->entries);
  chain->head = {};
  chain->head.fire = &fire_chain;
  if (entries.size() == 1) chain->head = entries[0];
  chain->head.number = id;
  for (std::uint32_t i = 0; i < chain->count; ++i)
    chain->entries[i].number = ++numbers | kEntryNumbers;
  return chain;
}

void Chain::destroy(const Chain* chain) { ::operator delete(const_cast<Chain*>(chain)); }

// Publishes what `entries` says; the chain that was there.
const Chain* Framework::Impl::exchange(Probe& probe) {
  auto& slot = tables.back()->slots[probe.id];
  const Chain* next =
      probe.entries.empty() ? nullptr : Chain::make(probe.id, probe.entries, entries_made);
  return slot.exchange(next, std::memory_order_acq_rel);
}

void Framework::Impl::forget_lines() {
  for (const auto& cpu : firing)
    if (FiringCpu* made = cpu.load(std::memory_order_acquire); made != nullptr) made->forget();
}

void Framework::Impl::publish_added(const std::vector<Probe*>& touched) {
  std::vector<const Chain*> old;
  for (Probe* probe : touched) {
    know_arguments(*probe);
    const Chain* before = exchange(*probe);
    if (before == nullptr) {
      ++enabled;
      probe->provider->ops->enable(probe->id, probe->parg);
    } else {
      old.push_back(before);
    }
  }
  if (old.empty()) return;
  forget_lines();
  cpus.synchronize();
  for (const Chain* chain : old) Chain::destroy(chain);
}

std::vector<Probe*> Framework::Impl::publish_new(const std::vector<Probe*>& touched) {
  std::vector<Probe*> bare;
  std::vector<Probe*> chained;
  for (Probe* probe : touched) {
    const auto& slot = tables.back()->slots[probe->id];
    (slot.load(std::memory_order_relaxed) == nullptr ? bare : chained).push_back(probe);
  }
  publish_added(bare);
  return chained;
}

void Framework::Impl::remove(const std::vector<ProbeId>& ids,
                             const std::function<bool(const ChainEntry&)>& is_gone) {
  std::vector<const Chain*> old;
  for (const ProbeId id : ids) {
    Probe* probe = this->probe(id);
    if (probe == nullptr) continue;
    const std::size_t before = probe->entries.size();
    std::erase_if(probe->entries, is_gone);
    if (probe->entries.size() == before) continue;
    old.push_back(exchange(*probe));
    if (probe->entries.empty()) {
      --enabled;
      probe->provider->ops->disable(id, probe->parg);
    }
  }
  forget_lines();
  cpus.synchronize();
  for (const Chain* chain : old) Chain::destroy(chain);
}

bool Framework::Impl::has_retained() const {
  return std::any_of(consumers.begin(), consumers.end(),
                     [](const Consumer* consumer) { return consumer->has_programs(); });
}

void Framework::Impl::match_retained() {
  for (Consumer* consumer : consumers) consumer->match_new_probes();
}

Framework::Framework(CpuSet& cpus, AddressMap& addresses)
    : impl_(std::make_unique<Impl>(*this, cpus, addresses)) {
  cpus.run_on_each_cpu([this](Cpu& cpu) { cpu.dtrace = impl_->join(cpu); });
}

Framework::~Framework() {
  impl_->anonymous = nullptr;
  {
    const std::lock_guard lock(impl_->mutex);
    DTM_CHECK(impl_->consumers.empty(), "a consumer outlives its framework");
    while (!impl_->callbacks.empty()) disable(impl_->callbacks.begin()->first);
  }
  impl_->kept.clear();
  impl_->cpus.run_on_each_cpu([](Cpu& cpu) { cpu.dtrace = nullptr; });
}

CpuSet& Framework::cpus() { return impl_->cpus; }
AddressMap& Framework::addresses() { return impl_->addresses; }

Result<EnablingId> Framework::enable(const ProbeDescription& description, ProbeCallback callback,
                                     void* context) {
  const std::lock_guard lock(impl_->mutex);
  const std::vector<ProbeId> ids = impl_->match(description);
  if (ids.empty()) {
    Diagnostic diagnostic;
    diagnostic.tag = "D_PDESC_ZERO";
    diagnostic.message =
        "probe description " + to_string(description) + " does not match any probes";
    return diagnostic;
  }
  const EnablingId enabling = impl_->next_enabling++;
  std::vector<Probe*> touched;
  for (const ProbeId id : ids) {
    Probe* probe = impl_->probe(id);
    ChainEntry entry;
    entry.fire = callback;
    entry.context = context;
    entry.enabling = enabling;
    probe->entries.push_back(entry);
    touched.push_back(probe);
  }
  impl_->callbacks[enabling] = {ids};
  impl_->publish_added(touched);
  return enabling;
}

void Framework::disable(EnablingId id) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->callbacks.find(id);
  if (found == impl_->callbacks.end()) return;
  const std::vector<ProbeId> ids = std::move(found->second.probes);
  impl_->callbacks.erase(found);
  impl_->remove(ids, [id](const ChainEntry& entry) { return entry.enabling == id; });
}

std::uint32_t Framework::enabled_probes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->enabled;
}

}  // namespace dtmalloc::dtrace
