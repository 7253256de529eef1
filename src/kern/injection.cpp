// SPDX-License-Identifier: BSD-2-Clause
// One planned failure of an allocation, for tests that try each of them.
// Locking:      plan_mutex
// Differs:      the kernel's own debug.malloc.failure_rate counts every request that may not wait;
//               this one picks by type and call site, and includes contigmalloc

#include "kern/ledger_impl.hpp"

namespace dtmalloc {

bool failure_planned(Kernel::Impl& k, const malloc_type* mtp, int flags) {
  if (!k.failure_set.load(std::memory_order_relaxed)) return false;
  if ((flags & kM_WAITOK) != 0 || !k.knows(mtp)) return false;
  const std::string_view symbol = k.self.symbol(*mtp);
  const SimThread& thread = k.cpus->current_thread();
  const std::lock_guard lock(k.plan_mutex);
  const FailurePlan& plan = k.plan;
  if (!plan.type.empty() && plan.type != symbol && plan.type != mtp->ks_shortdesc) return false;
  if (!plan.site.empty() && std::find(thread.call_sites.begin(), thread.call_sites.end(),
                                      plan.site) == thread.call_sites.end())
    return false;
  if (++k.plan_outcome.matched != plan.nth) return false;
  k.plan_outcome.failed = true;
  k.plan_outcome.type = mtp->ks_shortdesc;
  k.plan_outcome.stack.assign(thread.call_sites.rbegin(), thread.call_sites.rend());
  return true;
}

void Kernel::plan_failure(const FailurePlan& plan) {
  {
    const std::lock_guard lock(impl_->plan_mutex);
    impl_->plan = plan;
    impl_->plan_outcome = {};
  }
  impl_->failure_set.store(true);
  impl_->change_debug_guard();
}

FailureOutcome Kernel::end_failure() {
  impl_->failure_set.store(false);
  impl_->change_debug_guard();
  const std::lock_guard lock(impl_->plan_mutex);
  return impl_->plan_outcome;
}

}  // namespace dtmalloc
