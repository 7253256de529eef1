// SPDX-License-Identifier: BSD-2-Clause
// Sets of NUMA domains for C++: FreeBSD's names, and sets of one's own.
//
// Example:
//   Kernel k{KernelConfig{.domains = 2}};
//   void* near = k.malloc_domainset(100, &t, DOMAINSET_PREF(1), M_WAITOK);
//   domainset two = make_domainset(0x3, DOMAINSET_POLICY_ROUNDROBIN);
//   void* any = k.malloc_domainset(100, &t, &two, M_NOWAIT);
//
// Units:         domains are numbered from 0; bit d of a mask is domain d.
// Errors:        none here; an empty set makes the allocation that uses it fail.
// Thread safety: a set is read only while allocations use it.
// Source:        spec/malloc9.md 3.3; domainset(9).
#pragma once

#include <dtmalloc/vm/domainset.h>

#include <cstdint>

namespace dtmalloc {

using ::domainset;

inline constexpr int kMaxDomains = MAXMEMDOM;

// A set of one's own; `prefer` counts for DOMAINSET_POLICY_PREFER alone.
inline domainset make_domainset(unsigned long mask, int policy, int prefer = -1) {
  domainset set{};
  set.ds_mask.ds_bits = mask;
  set.ds_policy = static_cast<std::uint16_t>(policy);
  set.ds_prefer = static_cast<domainid_t>(prefer);
  for (int domain = 0; domain < kMaxDomains; ++domain)
    if ((mask >> domain & 1) != 0) set.ds_order[set.ds_cnt++] = static_cast<domainid_t>(domain);
  return set;
}

}  // namespace dtmalloc
