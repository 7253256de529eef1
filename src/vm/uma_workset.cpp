// SPDX-License-Identifier: BSD-2-Clause
// The working set of a zone's list of full buckets: what was wanted of late, and for how long more
// than that has lain idle.
//
//   uzd_imax, uzd_imin   most and fewest items since the last look; uzd_bimin: fewest since imax
//   uzd_wss              estimate of the working set, items
//   uzd_limin            items that lay idle over the last looks, weighted; uzd_timin: looks since
//                        the list ran dry
//
// Counterpart:  sys/vm/uma_core.c (zone_put_bucket, zone_fetch_bucket, zone_domain_update_wss)
// Locking:      the caller holds uzd_lock
#include <algorithm>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

// Others look at the count without the lock.
void add_items(uma_zone_domain& domain, std::int64_t count) {
  std::atomic_ref(domain.uzd_nitems).store(domain.uzd_nitems + count, std::memory_order_relaxed);
}

}  // namespace

// spec/malloc9.md 5.10, as all of this file.
void workset_put(uma_zone_domain& domain, std::int64_t count, bool working_set) {
  add_items(domain, count);
  if (!working_set) {
    domain.uzd_imax += count;
    domain.uzd_imin += count;
    domain.uzd_bimin += count;
    domain.uzd_limin += count;
  } else if (domain.uzd_nitems > domain.uzd_imax) {
    domain.uzd_wss = std::max(domain.uzd_wss, domain.uzd_imax - domain.uzd_bimin);
    domain.uzd_imax = domain.uzd_bimin = domain.uzd_nitems;
  }
}

void workset_take(uma_zone_domain& domain, std::int64_t count) {
  add_items(domain, -count);
  if (domain.uzd_bimin <= domain.uzd_nitems) return;
  domain.uzd_bimin = domain.uzd_nitems;
  domain.uzd_imin = std::min(domain.uzd_imin, domain.uzd_nitems);
}

// The bounds move along, so that the estimate does not see the reclaim.
void workset_reclaim(uma_zone_domain& domain, std::int64_t count) {
  const std::int64_t shift = std::min(domain.uzd_bimin, count);
  add_items(domain, -count);
  domain.uzd_imax -= shift;
  domain.uzd_bimin -= shift;
  domain.uzd_imin -= std::min(domain.uzd_imin, count);
  if (domain.uzd_limin >= count) {
    domain.uzd_limin -= count;
  } else {
    domain.uzd_limin = 0;
    domain.uzd_timin = 0;
  }
}

void workset_update(uma_zone_domain& domain) {
  domain.uzd_wss = std::max(domain.uzd_wss * 3 / 4, domain.uzd_imax - domain.uzd_bimin);
  const std::int64_t idle = domain.uzd_imin - domain.uzd_wss;
  if (idle >= 0) {
    domain.uzd_limin = domain.uzd_limin >= idle ? idle : (idle + 255 * domain.uzd_limin) / 256;
    ++domain.uzd_timin;
  } else {
    domain.uzd_limin = 0;
    domain.uzd_timin = 0;
  }
  domain.uzd_imax -= (domain.uzd_imax - domain.uzd_nitems + 1) / 2;
  domain.uzd_imin = domain.uzd_bimin = domain.uzd_nitems;
}

}  // namespace dtmalloc
