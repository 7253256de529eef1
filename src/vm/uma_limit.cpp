// SPDX-License-Identifier: BSD-2-Clause
// Limits of zones: how many items may be out or cached, and who waits for one.
//
// Counterpart:  sys/vm/uma_core.c (zone_alloc_limit, zone_free_limit, uma_zone_set_max, ...)
// Locking:      ZoneLimit::mutex, a leaf; nobody sleeps or prints with it held
// Differs:      sleepers stand in a queue of tickets instead of being counted in uz_items. The
//               action of uma_zone_set_maxaction() is a callout that is due at once
#include <algorithm>

#include "smp/functions.hpp"
#include "sys/format.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kWarnPeriod = 300'000'000'000;
constexpr const char* kZoneLimit = "zonelimit";

// The zone whose action this thread runs, and whether the action destroyed it.
struct Acting {
  const uma_zone* zone = nullptr;
  bool destroyed = false;
};
thread_local Acting acting;

// The zone may have gone meanwhile, and another may be at its place: then no action is due.
void run_action(Vm& vm, uma_zone* zone) {
  std::function<void(uma_zone*)> action;
  {
    const std::lock_guard lock(vm.zones_mutex);
    const bool known = std::any_of(vm.zones.begin(), vm.zones.end(), [&](const auto& other) {
      return other.get() == zone && other->listed;
    });
    if (!known) return;
    ++zone->uz_reclaimers;
  }
  struct InAction {
    Vm& vm;
    uma_zone* zone;
    Acting outer = std::exchange(acting, Acting{zone, false});
    ~InAction() {
      acting = outer;
      const std::lock_guard lock(vm.zones_mutex);
      --zone->uz_reclaimers;
    }
  };
  bool destroyed;
  {
    const InAction in_action{vm, zone};
    {
      const std::lock_guard lock(zone->limit.mutex);
      if (std::exchange(zone->limit.action_due, false)) action = zone->limit.uz_maxaction;
    }
    if (action) action(zone);
    destroyed = acting.destroyed;
  }
  if (destroyed) uma_zdestroy(zone);
}

// Somebody found the zone at its limit.
void complain(uma_zone& zone) {
  ZoneLimit& limit = zone.limit;
  Vm& vm = *zone.vm;
  const std::uint64_t now = vm.cpus.clock().now();
  std::string text;
  bool act = false;
  {
    const std::lock_guard lock(limit.mutex);
    if (zone.uz_warning != nullptr && vm.zone_warnings.load() &&
        (!limit.warned || now - limit.warned_at >= kWarnPeriod)) {
      limit.warned = true;
      limit.warned_at = now;
      text = "[zone: " + std::string(zone.uz_name) + "] " + zone.uz_warning + "\n";
    }
    act = limit.uz_maxaction && !std::exchange(limit.action_due, true);
  }
  if (!text.empty()) vm.cpus.console(text);
  if (!act) return;
  vm.cpus.clock().schedule(now, 0, [&vm, &zone] { run_action(vm, &zone); });
}

// Requires: limit.mutex held. The first in the queue, woken: the caller wakes its channel after.
ZoneLimit::Ticket* next_sleeper(uma_zone& zone) {
  ZoneLimit& limit = zone.limit;
  if (limit.queue.empty() || zone.item_count() >= zone.uz_max_items.load()) return nullptr;
  ZoneLimit::Ticket* first = limit.queue.front();
  limit.queue.pop_front();
  first->woken.store(true);
  return first;
}

void wait_for_limit(uma_zone& zone, std::unique_lock<std::mutex>& lock) {
  ZoneLimit& limit = zone.limit;
  ZoneLimit::Ticket ticket;
  if (in_reclaim_pass()) zone.vm->cpus.panic("not modelled: a handler of vm_lowmem sleeps");
  limit.queue.push_back(&ticket);
  zone.uz_sleepers.fetch_add(1);
  zone.uz_items += uma_zone::kSleeper;
  zone.uz_sleeps.fetch_add(1);
  lock.unlock();
  struct Leave {
    uma_zone& zone;
    ZoneLimit::Ticket& ticket;
    std::unique_lock<std::mutex>& lock;
    ~Leave() {
      lock.lock();
      std::erase(zone.limit.queue, &ticket);
      zone.uz_sleepers.fetch_sub(1);
      zone.uz_items -= uma_zone::kSleeper;
    }
  } leave{zone, ticket, lock};
  zone.vm->cpus.sleep_on(&ticket, operation_text(*zone.vm), kZoneLimit,
                         [&] { return ticket.woken.load(); });
}

}  // namespace

bool zdestroy_after_action(const uma_zone& zone) {
  if (acting.zone != &zone) return false;
  acting.destroyed = true;
  return true;
}

int zone_alloc_limit(uma_zone& zone, int count, int flags) {
  ZoneLimit& limit = zone.limit;
  std::unique_lock lock(limit.mutex);
  // Who comes first is served first; who was woken does not look at those behind.
  for (bool woken = false;; woken = true) {
    const std::uint64_t max = zone.uz_max_items.load();
    if ((woken || zone.uz_sleepers.load() == 0) && zone.item_count() < max) {
      const auto granted = static_cast<int>(
          std::min<std::uint64_t>(static_cast<std::uint64_t>(count), max - zone.item_count()));
      zone.uz_items += static_cast<std::uint64_t>(granted);
      ZoneLimit::Ticket* next = next_sleeper(zone);
      lock.unlock();
      if (next != nullptr) zone.vm->cpus.wakeup(next);
      return granted;
    }
    lock.unlock();
    complain(zone);
    if ((flags & m::WAITOK) == 0) return 0;
    lock.lock();
    // The complaint left the lock: an item may have come.
    if (zone.item_count() < zone.uz_max_items.load() && zone.uz_sleepers.load() == 0) continue;
    wait_for_limit(zone, lock);
  }
}

void zone_free_limit(uma_zone& zone, int count) {
  ZoneLimit& limit = zone.limit;
  ZoneLimit::Ticket* next = nullptr;
  {
    const std::lock_guard lock(limit.mutex);
    zone.uz_items -= std::min(zone.item_count(), static_cast<std::uint64_t>(count));
    next = next_sleeper(zone);
  }
  if (next != nullptr) zone.vm->cpus.wakeup(next);
}

// spec/malloc9.md 5.12, as the rest of this file.
void uma_zone_set_maxcache(uma_zone* zone, int nitems) {
  in_function(
      KernelFunction::uma_zone_set_maxcache,
      [&] {
        Vm& vm = *zone->vm;
        const bool crosses = zone->first_touch() && vm.config.domains > 1;
        const int buckets =
            (crosses ? 3 : 2) * std::max(1, vm.config.cpus) + (crosses ? vm.config.domains : 0);
        int size = std::clamp(nitems / buckets / 2, 0, BUCKET_MAX);
        if (size == 0 && nitems >= buckets) size = 1;
        zone->uz_bucket_size_max = static_cast<std::uint16_t>(size);
        zone->uz_bucket_size.store(zone->uz_bucket_size_max);
        zone->uz_bucket_size_min = std::min(zone->uz_bucket_size_min, zone->uz_bucket_size_max);
        zone->uz_bucket_max = static_cast<std::uint64_t>(std::max(0, nitems - buckets * size));
      },
      zone, nitems);
}

int uma_zone_set_max(uma_zone* zone, int nitems) {
  return in_function(
      KernelFunction::uma_zone_set_max,
      [&]() -> int {
        uma_zone_set_maxcache(zone, nitems);
        ZoneLimit& limit = zone->limit;
        std::deque<ZoneLimit::Ticket*> woken;
        {
          const std::lock_guard lock(limit.mutex);
          zone->uz_max_items.store(static_cast<std::uint64_t>(nitems));
          zone->uz_flags |= UMA_ZFLAG_LIMIT;
          woken.swap(limit.queue);
          for (ZoneLimit::Ticket* ticket : woken) ticket->woken.store(true);
        }
        for (ZoneLimit::Ticket* ticket : woken) zone->vm->cpus.wakeup(ticket);
        return nitems;
      },
      zone, nitems);
}

int uma_zone_get_max(uma_zone* zone) { return static_cast<int>(zone->uz_max_items.load()); }

int uma_zone_get_cur(uma_zone* zone) { return static_cast<int>(zone_stats(*zone).used); }

void uma_zone_set_warning(uma_zone* zone, const char* warning) {
  const char* const text = uma_text(*zone->vm, warning);
  const std::lock_guard lock(zone->limit.mutex);
  zone->uz_warning = text;
}

void uma_zone_set_maxaction(uma_zone* zone, std::function<void(uma_zone*)> action) {
  const std::lock_guard lock(zone->limit.mutex);
  zone->limit.uz_maxaction = std::move(action);
}

bool uma_zone_exhausted(uma_zone* zone) { return zone->uz_sleepers.load() != 0; }

}  // namespace dtmalloc
