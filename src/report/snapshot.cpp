// SPDX-License-Identifier: BSD-2-Clause
// Copies the counters of a kernel; the only report source that sees live structures.

#include <dtmalloc/kernel.hpp>
#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {

Snapshot take_snapshot(const Kernel& kernel) {
  Snapshot snapshot;
  snapshot.classes = kernel.classes();
  snapshot.release = kernel.release().version;
  snapshot.vmstat_format = kernel.release().vmstat_format;
  for (const malloc_type* type : kernel.types()) {
    const TypeStats stats = kernel.type_stats(*type);
    snapshot.types.push_back({type->ks_shortdesc == nullptr ? "" : type->ks_shortdesc,
                              stats.memalloced, stats.memfreed, stats.numallocs, stats.numfrees,
                              stats.size_mask, type->ks_mti.mti_zone});
  }
  snapshot.zones = kernel.zones();
  return snapshot;
}

}  // namespace dtmalloc::report
