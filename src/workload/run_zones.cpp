// SPDX-License-Identifier: BSD-2-Clause
// Runs the statements about zones.

#include "workload/runner.hpp"

namespace dtmalloc::workload {

void Runner::State::make_zone(const Op& op) {
  const ZoneDecl& decl = workload.zones[op.detail];
  uma_zone*& zone = zones[op.detail];
  const int align = decl.align == 0 ? UMA_ALIGN_PTR : static_cast<int>(decl.align - 1);
  zone = uma_zcreate(kernel.vm(), decl.name.c_str(), decl.size, nullptr, nullptr, nullptr, nullptr,
                     align, decl.flags);
  if (decl.limit != 0) uma_zone_set_max(zone, static_cast<int>(decl.limit));
  if (!decl.warning.empty()) uma_zone_set_warning(zone, decl.warning.c_str());
}

uma_zone* Runner::State::zone_of(const Op& op) {
  uma_zone* zone = zones[op.detail];
  if (zone == nullptr)
    fail(op, "WL_NO_ZONE", "the zone " + workload.zones[op.detail].symbol + " does not exist now");
  return zone;
}

void Runner::State::zone_operation(Thread& thread, const Op& op) {
  switch (op.kind) {
    case OpKind::zone:
      return make_zone(op);
    case OpKind::uma_zalloc: {
      uma_zone* zone = zone_of(op);
      void* item = (zone_flags_of(op) & UMA_ZONE_PCPU) != 0 ? uma_zalloc_pcpu(zone, op.flags)
                                                            : uma_zalloc(zone, op.flags);
      Slot& slot = set(thread, op, item, kNone);
      if (owners != nullptr) owners->forget(slot.owner);
      return;
    }
    case OpKind::uma_zfree: {
      void* item = get(thread, op, op.target).addr;
      return uma_zfree(zone_of(op), item);
    }
    case OpKind::zdestroy:
      uma_zdestroy(zone_of(op));
      zones[op.detail] = nullptr;
      return;
    default:
      return reclaim(thread, op);
  }
}

std::uint32_t Runner::State::zone_flags_of(const Op& op) const {
  return workload.zones[op.detail].flags;
}

void Runner::State::reclaim(Thread& thread, const Op& op) {
  Vm& vm = kernel.vm();
  if (thread.contexts != 0)
    fail(op, "WL_CONTEXT", "memory cannot be reclaimed inside critical, interrupt or nosleep");
  int domain = UMA_ANYDOMAIN;
  if (op.extra.number != 0) {
    domain = domain_of(op, op.value, evaluate(thread, op, op.value));
  }
  if (op.detail == kNone) return uma_reclaim_domain(vm, op.flags, domain);
  // Names are not unique: all zones of that name.
  const std::string& name = workload.strings[op.detail];
  bool found = false;
  for (uma_zone* zone : uma_zones(vm)) {
    if (uma_zone_name(zone) != name) continue;
    found = true;
    uma_zone_reclaim_domain(zone, op.flags, domain);
  }
  if (!found) refuse_zone(op);
}

}  // namespace dtmalloc::workload
