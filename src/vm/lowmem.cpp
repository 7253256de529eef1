// SPDX-License-Identifier: BSD-2-Clause
// When pages or kmem are short: the handlers of vm_lowmem, the page daemon, UMA's reclaim worker.
//
// Both are callouts that occur once: due now, or as soon as their rate allows. So a sleeper for
// pages is no deadlock while a pass is due, and is one when a pass has changed nothing.
//
//   page daemon  free pages of a domain below the wake-up threshold, or somebody waits for pages;
//                at most once in 10 s: handlers with VM_LOW_PAGES, then TRIM; below `severe` the
//                worker too
//   worker       uma_kmem_total above the limit, pages severely short, or somebody waits; at most
//                once a second: handlers with VM_LOW_KMEM, then DRAIN_CPU
//
// Counterpart:  sys/vm/vm_pageout.c (vm_pageout_lowmem), uma_core.c (uma_reclaim_worker)
// Locking:      lowmem.mutex guards when passes are due and the handlers; passes run without it
// Differs:      DEVIATES: where the page daemon calls UMA, and its 10 s, are not verified.
//               DEVIATES: a pass runs on whichever thread looks at the clock, so a handler must not
//               sleep: there are no kernel threads. DEVIATES: nothing pages out, so a pass also
//               wakes those who wait while free pages are below the minimum, once for each change
//               of the machine: a kernel's page daemon would have raised the count
#include <algorithm>

#include "vm/uma_int.hpp"

namespace dtmalloc {

struct LowmemHandler::Entry {
  std::recursive_mutex mutex;
  std::function<void(int)> function;  // null: gone
};

namespace {

constexpr std::uint64_t kDaemonPeriod = 10'000'000'000;
constexpr std::uint64_t kWorkerPeriod = 1'000'000'000;

// Changes with whatever anybody but UMA itself does to the machine's memory.
std::uint64_t operations_done(Vm& vm) {
  std::uint64_t sum = vm.page_frees(vm.all_domains()) - vm.lowmem.slab_frees.load();
  const ZonesInUse in_use(vm);
  for (uma_zone* zone : in_use.zones) {
    if ((zone->uz_flags & (UMA_ZFLAG_BUCKET | UMA_ZFLAG_INTERNAL)) != 0) continue;
    const ZoneStats stats = zone_stats(*zone);
    sum += stats.allocs + stats.frees;
  }
  return sum;
}

thread_local int passes = 0;  // that this thread is in

class InPass {
 public:
  InPass() { ++passes; }
  ~InPass() { --passes; }
  InPass(const InPass&) = delete;
  InPass& operator=(const InPass&) = delete;
};

void daemon_pass(Vm& vm) {
  const InPass pass;
  {
    const std::lock_guard lock(vm.lowmem.mutex);
    vm.lowmem.daemon.due = false;
    if (vm.page_waiters.load() == 0 && !vm.pages_low()) return;
    vm.lowmem.daemon.after = vm.cpus.clock().after(kDaemonPeriod);
  }
  invoke_lowmem_handlers(vm, VM_LOW_PAGES);
  uma_reclaim(vm, UMA_RECLAIM_TRIM);
  if (vm.page_count_severe()) uma_reclaim_wakeup(vm);
}

void worker_pass(Vm& vm) {
  const InPass pass;
  {
    const std::lock_guard lock(vm.lowmem.mutex);
    vm.lowmem.worker.after = vm.cpus.clock().after(kWorkerPeriod);
  }
  invoke_lowmem_handlers(vm, VM_LOW_KMEM);
  uma_reclaim(vm, UMA_RECLAIM_DRAIN_CPU);
  {
    // What was asked for meanwhile is done. Who waits for pages by now is looked at below.
    const std::lock_guard lock(vm.lowmem.mutex);
    vm.lowmem.worker.due = false;
  }
  if (vm.page_waiters.load() == 0) return;
  const std::uint64_t done = operations_done(vm);
  if (vm.lowmem.seen.exchange(done) == done) return;
  vm.lowmem.offers.fetch_add(1);
  vm.cpus.wakeup(&vm.page_waiters);
}

void schedule(Vm& vm, Lowmem::Pass& pass, void (*function)(Vm&)) {
  const std::lock_guard lock(vm.lowmem.mutex);
  if (pass.due) return;
  pass.due = true;
  Clock& clock = vm.cpus.clock();
  pass.id = clock.schedule(std::max(clock.now(), pass.after), 0, [&vm, function] { function(vm); });
}

}  // namespace

bool in_reclaim_pass() { return passes != 0; }

void invoke_lowmem_handlers(Vm& vm, int flags) {
  const InPass pass;
  std::vector<std::shared_ptr<LowmemHandler::Entry>> handlers;
  {
    const std::lock_guard lock(vm.lowmem.mutex);
    handlers = vm.lowmem.handlers;
  }
  for (const auto& handler : handlers) {
    const std::lock_guard lock(handler->mutex);
    if (handler->function) handler->function(flags);
  }
}

LowmemHandler::LowmemHandler(Vm& vm, std::function<void(int)> function)
    : vm_(vm), entry_(std::make_shared<Entry>()) {
  entry_->function = std::move(function);
  const std::lock_guard lock(vm_.lowmem.mutex);
  vm_.lowmem.handlers.push_back(entry_);
}

LowmemHandler::~LowmemHandler() {
  {
    const std::lock_guard lock(vm_.lowmem.mutex);
    std::erase(vm_.lowmem.handlers, entry_);
  }
  const std::lock_guard lock(entry_->mutex);
  entry_->function = nullptr;
}

void pagedaemon_wakeup(Vm& vm) { schedule(vm, vm.lowmem.daemon, daemon_pass); }
void uma_reclaim_wakeup(Vm& vm) { schedule(vm, vm.lowmem.worker, worker_pass); }

void lowmem_end(Vm& vm) {
  for (Lowmem::Pass* pass : {&vm.lowmem.daemon, &vm.lowmem.worker})
    if (pass->due) vm.cpus.clock().cancel(pass->id);
}

void pages_changed(Vm& vm) {
  if (vm.pages_low()) pagedaemon_wakeup(vm);
  if (vm.page_waiters.load() != 0) uma_reclaim_wakeup(vm);
  // The timer has something to find.
  if (vm.page_count_min() != vm.bucketdisable.load(std::memory_order_relaxed)) uma_timer_touch(vm);
}

void Vm::kmem_total_add(std::uint64_t bytes) {
  if (uma_kmem_total.fetch_add(bytes) > uma_kmem_limit.load()) uma_reclaim_wakeup(*this);
}

void uma_set_limit(Vm& vm, unsigned long limit) { vm.uma_kmem_limit.store(limit); }
unsigned long uma_limit(Vm& vm) { return vm.uma_kmem_limit.load(); }
unsigned long uma_size(Vm& vm) { return vm.uma_kmem_total.load(); }
long uma_avail(Vm& vm) { return static_cast<long>(uma_limit(vm) - uma_size(vm)); }

}  // namespace dtmalloc
