// SPDX-License-Identifier: BSD-2-Clause
// UMA's look at its zones every 20 s.
//
// A look that finds nothing to do and nothing that a later one would find parks the timer: no
// callout exists, a wait of years costs nothing. Only uzd_timin goes on, and is made up for when
// somebody asks (zone_list) or when a bucket comes or goes (uma_timer_touch), which starts the
// timer again, at the next multiple of 20 s.
//
// Counterpart:  sys/vm/uma_core.c (uma_timeout, zone_timeout)
// Locking:      timer.mutex, before zones_mutex and uzd_lock; a look runs with none of them held
// Invariants:   while parked each domain of a managed zone has imax = imin = bimin = nitems and
//               wss = 0, and is empty or was found idle
// Differs:      hash tables do not exist, so none grows
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

// Requires: timer.mutex held, the timer parked.
void catch_up(Vm& vm) {
  const std::uint64_t missed = (vm.cpus.clock().now() - vm.timer.last) / UMA_TIMEOUT;
  if (missed == 0) return;
  vm.timer.last += missed * UMA_TIMEOUT;
  const ZonesInUse in_use(vm);
  for (uma_zone* zone : in_use.zones) {
    if (!zone->timed()) continue;
    for (std::size_t d = 0; d < zone->domains(); ++d) {
      const std::lock_guard domain_lock(zone->uz_domain[d].uzd_lock);
      zone->uz_domain[d].uzd_timin += static_cast<std::uint32_t>(missed);
    }
  }
}

void look(Vm& vm) {
  UmaTimer& timer = vm.timer;
  timer.touched.store(false);
  const bool busy = uma_timeout_pass(vm);
  const std::lock_guard lock(timer.mutex);
  timer.last = vm.cpus.clock().now() / UMA_TIMEOUT * UMA_TIMEOUT;
  if (busy || timer.touched.load()) return;
  timer.parked.store(true);
  if (timer.touched.load()) {
    timer.parked.store(false);
    return;
  }
  vm.cpus.clock().stop(timer.id);
}

}  // namespace

void uma_timer_sync(Vm& vm) {
  if (!vm.timer.parked.load()) return;
  const std::lock_guard lock(vm.timer.mutex);
  if (vm.timer.parked.load()) catch_up(vm);
}

void uma_timer_start(Vm& vm) {
  UmaTimer& timer = vm.timer;
  const std::lock_guard lock(timer.mutex);
  if (!timer.parked.load()) return;
  catch_up(vm);
  timer.parked.store(false);
  timer.id = vm.cpus.clock().schedule(timer.last + UMA_TIMEOUT, UMA_TIMEOUT, [&vm] { look(vm); });
}

void uma_timer_end(Vm& vm) {
  if (!vm.timer.parked.load()) vm.cpus.clock().cancel(vm.timer.id);
}

}  // namespace dtmalloc
