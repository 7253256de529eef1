// SPDX-License-Identifier: BSD-2-Clause
// NUMA domains: the named sets, and the walk over a set in the order of its policy.
//
// Counterpart:  sys/vm/vm_domainset.c, sys/kern/kern_cpuset.c (domainset_*)
// Locking:      none; a thread's counter is its own, a keg's is atomic
// Differs:      the order is computed from the mask. An allocation has no object, so interleave
//               begins with the lowest domain each time
#include <bit>
#include <cerrno>

#include "vm/vm.hpp"

extern "C" {

#define DTM_ALL_DOMAINS ((1ul << MAXMEMDOM) - 1)
#define DTM_EACH_DOMAIN(set) \
  { set(0), set(1), set(2), set(3), set(4), set(5), set(6), set(7) }
#define DTM_ALL(policy, prefer)                                                  \
  {                                                                              \
    {}, {DTM_ALL_DOMAINS}, policy, prefer, MAXMEMDOM, { 0, 1, 2, 3, 4, 5, 6, 7 } \
  }
#define DTM_PREFER(d) DTM_ALL(DOMAINSET_POLICY_PREFER, d)
#define DTM_FIXED(d)                                          \
  {                                                           \
    {}, {1ul << d}, DOMAINSET_POLICY_ROUNDROBIN, -1, 1, { d } \
  }

domainset domainset_roundrobin = DTM_ALL(DOMAINSET_POLICY_ROUNDROBIN, -1);
domainset domainset_firsttouch = DTM_ALL(DOMAINSET_POLICY_FIRSTTOUCH, -1);
domainset domainset_interleave = DTM_ALL(DOMAINSET_POLICY_INTERLEAVE, -1);
domainset domainset_prefer[MAXMEMDOM] = DTM_EACH_DOMAIN(DTM_PREFER);
domainset domainset_fixed[MAXMEMDOM] = DTM_EACH_DOMAIN(DTM_FIXED);
}

namespace dtmalloc {
namespace {

bool has(DomainMask mask, int domain) {
  return domain >= 0 && domain < kMaxDomains && (mask >> domain & 1) != 0;
}

// The set's domain whose turn it is; one that remains.
int round_robin(vm_domainset_iter& di) {
  const DomainMask all =
      static_cast<DomainMask>(di.di_domain->ds_mask.ds_bits) & di.vm->all_domains();
  const auto count = static_cast<std::uint32_t>(std::popcount(all));
  while (true) {
    std::uint32_t turn =
        std::atomic_ref(*di.di_iter).fetch_add(1, std::memory_order_relaxed) % count;
    DomainMask rest = all;
    for (; turn > 0; --turn) rest &= rest - 1;
    const int domain = std::countr_zero(rest);
    if (has(di.di_remain_mask, domain)) return domain;
  }
}

int first_choice(vm_domainset_iter& di) {
  int domain = -1;
  switch (di.di_domain->ds_policy) {
    case DOMAINSET_POLICY_FIRSTTOUCH:
      domain = curcpu->domain;
      break;
    case DOMAINSET_POLICY_PREFER:
      domain = di.di_domain->ds_prefer;
      break;
    case DOMAINSET_POLICY_INTERLEAVE:
      domain = std::countr_zero(di.di_valid_mask);
      break;
    default:
      break;
  }
  return has(di.di_remain_mask, domain) ? domain : round_robin(di);
}

// The next domain of this phase. False: none is left.
bool next_of_phase(vm_domainset_iter& di, bool first, int* domain) {
  while (di.di_remain_mask != 0) {
    *domain = first ? first_choice(di) : round_robin(di);
    first = false;
    const DomainMask bit = DomainMask{1} << *domain;
    di.di_remain_mask &= ~bit;
    if (!di.di_minskip || !di.vm->domains[static_cast<std::size_t>(*domain)].below_min())
      return true;
    di.di_min_mask |= bit;
  }
  return false;
}

// The next domain of this sweep. False: all have been asked.
bool next_of_sweep(vm_domainset_iter& di, bool first, int* domain) {
  if (next_of_phase(di, first, domain)) return true;
  if (!di.di_minskip) return false;
  di.di_minskip = false;
  di.di_remain_mask = di.di_min_mask & di.di_valid_mask;
  return next_of_phase(di, true, domain);
}

bool begin_sweep(vm_domainset_iter& di, int* domain) {
  di.di_minskip = true;
  di.di_min_mask = 0;
  di.di_remain_mask = di.di_valid_mask;
  di.seen = di.vm->page_frees(di.di_valid_mask);
  return next_of_sweep(di, true, domain);
}

}  // namespace

int vm_domainset_iter_policy_ref_init(vm_domainset_iter& di, Vm& vm, const domainset& ds,
                                      std::uint32_t* iter, int* domain, int* flags) {
  di.vm = &vm;
  di.di_domain = &ds;
  di.di_iter = iter;
  di.di_valid_mask = static_cast<DomainMask>(ds.ds_mask.ds_bits) & vm.all_domains();
  di.di_flags = *flags;
  *flags = (*flags & ~m::WAITOK) | m::NOWAIT;
  return begin_sweep(di, domain) ? 0 : ENOMEM;
}

int vm_domainset_iter_policy_init(vm_domainset_iter& di, Vm& vm, const domainset& ds, int* domain,
                                  int* flags) {
  return vm_domainset_iter_policy_ref_init(di, vm, ds, &vm.cpus.current_thread().domain_iter,
                                           domain, flags);
}

int vm_domainset_iter_policy(vm_domainset_iter& di, int* domain) {
  if (di.di_valid_mask == 0) return ENOMEM;
  if (next_of_sweep(di, false, domain)) return 0;
  if ((di.di_flags & m::WAITOK) == 0) return ENOMEM;
  di.vm->page_wait(di.di_valid_mask, di.seen);
  return begin_sweep(di, domain) ? 0 : ENOMEM;
}

void vm_domainset_iter_ignore(vm_domainset_iter& di, int domain) {
  di.di_valid_mask &= ~(DomainMask{1} << domain);
}

}  // namespace dtmalloc
