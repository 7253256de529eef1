// SPDX-License-Identifier: BSD-2-Clause
// The allocator against the model, after each statement: addresses that cannot be, class sizes,
// contents, firings, statistics of each CPU, and the laws over all structures.

#include <gtest/gtest.h>

#include "support/laws.hpp"
#include "support/op_gen.hpp"
#include "support/replay.hpp"

namespace dtmalloc::support {
namespace {

using workload::Workload;

std::string agrees(const Workload& workload) {
  Replay replay(workload);
  const std::string problem = replay.run();
  return problem.empty() ? replay.compare_all() : problem;
}

// REQ: LAW-1 LAW-2 LAW-3 LAW-10
TEST(UmaVsModel, Agrees_WhenAllKindsOfOperationsMix) { check_law(400, mixed_profile, agrees); }

TEST(UmaVsModel, Agrees_WhenFewClassesHaveManyBlocks) { check_law(300, small_profile, agrees); }

TEST(UmaVsModel, Agrees_WhenAClassFillsAndEmpties) { check_law(40, wave_profile, agrees); }

// REQ: LAW-11. Blocks come from where the caller said, items go home, and each domain's sums hold.
TEST(UmaVsModel, Agrees_WhenThereAreSeveralDomains) { check_law(250, domains_profile, agrees); }

// Small requests fail with a firing of size 0, large ones without a trace, and only when nothing
// is left.
TEST(UmaVsModel, Agrees_WhenMemoryRunsOut) { check_law(200, tight_profile, agrees); }

TEST(UmaVsModel, Agrees_WhenNothingIsTraced) {
  check_law(200, mixed_profile, [](const Workload& workload) {
    Replay replay(workload, {.probes = false, .invariants = std::nullopt});
    const std::string problem = replay.run();
    return problem.empty() ? replay.compare_all() : problem;
  });
}

// Memory that is given back in any place changes neither what a caller sees nor any law.
TEST(UmaVsModel, Agrees_WhereverMemoryIsReclaimed) {
  const auto reclaimed = [](const Workload& workload) -> std::string {
    Workload with = workload;
    std::uint64_t random = with.bodies[0].size();
    std::vector<workload::Op> ops;
    for (const workload::Op& op : workload.bodies[0]) {
      ops.push_back(op);
      random = random * 6364136223846793005 + 1442695040888963407;
      if (op.kind == workload::OpKind::type || random >> 59 != 0) continue;
      workload::Op reclaim;
      reclaim.kind = workload::OpKind::reclaim;
      reclaim.flags = 1 + static_cast<int>((random >> 32) % 3);
      ops.push_back(reclaim);
    }
    with.bodies[0] = std::move(ops);
    for (const bool invariants : {false, true}) {
      Replay replay(with, {.probes = true, .invariants = invariants});
      std::string problem = replay.run();
      if (problem.empty()) problem = replay.compare_all();
      if (!problem.empty()) return problem;
    }
    return "";
  };
  check_law(150, mixed_profile, reclaimed);
  check_law(60, tight_profile, reclaimed);
}

// INVARIANTS changes how many items a slab holds, not what a caller may see.
TEST(UmaVsModel, HasTheSameStatistics_WithAndWithoutInvariants) {
  check_law(100, mixed_profile, [](const Workload& workload) -> std::string {
    Replay production(workload, {.probes = true, .invariants = false});
    std::string problem = production.run();
    if (!problem.empty()) return problem;
    Replay debug(workload, {.probes = true, .invariants = true});
    problem = debug.run();
    if (!problem.empty()) return problem;
    for (std::size_t i = 0; i < production.types().size(); ++i) {
      const TypeStats a = production.kernel().type_stats(*production.types()[i]);
      const TypeStats b = debug.kernel().type_stats(*debug.types()[i]);
      if (a.memalloced != b.memalloced || a.memfreed != b.memfreed || a.numallocs != b.numallocs ||
          a.numfrees != b.numfrees || a.size_mask != b.size_mask) {
        return std::string("INVARIANTS change the statistics of ") +
               production.types()[i]->ks_shortdesc;
      }
    }
    return "";
  });
}

}  // namespace
}  // namespace dtmalloc::support
