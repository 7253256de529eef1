// SPDX-License-Identifier: BSD-2-Clause
// Laws over whole runs: repetition, what is left after everything is freed, counts of firings.

#include <gtest/gtest.h>

#include <map>

#include "support/laws.hpp"
#include "support/op_gen.hpp"
#include "support/replay.hpp"

namespace dtmalloc::support {
namespace {

using workload::Workload;

struct Everything {
  std::vector<std::uint64_t> answers;
  std::vector<std::uint64_t> numbers;
  bool operator==(const Everything&) const = default;
};

Everything everything(Replay& replay) {
  Everything all{replay.answers(), {}};
  const auto add = [&](std::initializer_list<std::uint64_t> numbers) {
    all.numbers.insert(all.numbers.end(), numbers);
  };
  for (const malloc_type* type : replay.types()) {
    const TypeStats s = replay.kernel().type_stats(*type);
    add({s.memalloced, s.memfreed, s.numallocs, s.numfrees, s.size_mask});
  }
  for (const ZoneStats& z : replay.kernel().zones()) {
    add({z.used, z.free, z.requests, z.fail, z.sleep, z.bucket_size, z.keg_pages, z.keg_free_items,
         z.keg_free_slabs, z.bucket_cache_items});
    for (const ZoneStats::Cpu& cpu : z.cpus) all.numbers.push_back(cpu.items);
  }
  add({replay.kernel().free_pages(), replay.kernel().uma_kmem_total(),
       replay.kernel().cpus().clock().now()});
  return all;
}

TEST(StatsLaws, SameWorkloadGivesSameAddressesAndStatistics) {
  // REQ: LAW-7
  check_law(150, mixed_profile, [](const Workload& workload) -> std::string {
    Replay first(workload);
    std::string problem = first.run();
    if (!problem.empty()) return problem;
    Replay second(workload);
    problem = second.run();
    if (!problem.empty()) return problem;
    const Everything a = everything(first), b = everything(second);
    if (a.answers != b.answers) return "the second run answers other addresses";
    return a == b ? "" : "the second run has other statistics";
  });
}

// What a snapshot shows beside counters that only grow.
std::string differs_from_boot(const Kernel& booted, const Kernel& used) {
  for (const malloc_type* type : used.types()) {
    const TypeStats s = used.type_stats(*type);
    if (s.memalloced != s.memfreed || s.numallocs != s.numfrees) {
      return std::string("type ") + type->ks_shortdesc + " still has blocks";
    }
  }
  if (!used.leaks().empty()) return "leaks are reported";
  const std::vector<ZoneStats> before = booted.zones(), after = used.zones();
  if (before.size() != after.size()) return "zones came or went";
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const ZoneStats &a = before[i], &b = after[i];
    if (a.name != b.name || a.size != b.size || a.rsize != b.rsize || a.ppera != b.ppera ||
        a.ipers != b.ipers || a.flags != b.flags || a.align != b.align || a.limit != b.limit ||
        a.bucket_size_max != b.bucket_size_max) {
      return "zone " + a.name + " has another shape";
    }
    pages += b.keg_pages;
    if (b.name.rfind("malloc-", 0) == 0 && b.used != a.used) {
      return "zone " + b.name + " has live items";
    }
  }
  if (used.free_pages() + pages != booted.free_pages()) return "pages are lost";
  return "";
}

TEST(StatsLaws, SnapshotIsThatOfBoot_WhenEverythingIsFreed) {
  // REQ: LAW-9
  check_law(300, mixed_profile, [](const Workload& workload) -> std::string {
    Replay replay(workload, {.probes = false, .invariants = std::nullopt});
    const Kernel booted(replay.kernel().config());
    std::string problem = replay.run();
    // Types whose blocks were freed under other names are no affair of this law.
    for (const auto& op : workload.bodies[0]) {
      if (op.kind == workload::OpKind::free && op.type != workload::kNone) return problem;
      if (op.kind == workload::OpKind::zfree && op.type != workload::kNone) return problem;
    }
    if (problem.empty()) problem = replay.free_all();
    if (problem.empty()) problem = replay.compare_all();
    return problem.empty() ? differs_from_boot(booted, replay.kernel()) : problem;
  });
}

struct Sums {
  std::uint64_t count = 0, bytes = 0, free_count = 0, free_bytes = 0, failed = 0;
};

// From the moment of enabling: firings with a size are the growth of the counters.
std::string counts_firings(const Workload& workload) {
  Replay replay(workload, {.probes = false, .invariants = std::nullopt});
  Kernel& kernel = replay.kernel();
  dtrace::Framework framework(kernel.cpus(), kernel.addresses());
  load_dtmalloc(framework, kernel);
  framework.open();
  replay.start_from_here();
  std::map<const malloc_type*, TypeStats> before;
  for (const malloc_type* type : replay.types()) before[type] = kernel.type_stats(*type);
  ProbeLog log(framework);
  const std::string problem = replay.run();
  if (!problem.empty()) return problem;
  std::map<const malloc_type*, Sums> sums;
  for (const Firing& firing : log.firings()) {
    Sums& sum = sums[firing.type];
    if (firing.probe == Firing::free) {
      ++sum.free_count;
      sum.free_bytes += firing.size;
    } else if (firing.size > 0) {
      ++sum.count;
      sum.bytes += firing.size;
    } else {
      ++sum.failed;
    }
  }
  for (const malloc_type* type : replay.types()) {
    const TypeStats& then = before[type];
    const TypeStats now = kernel.type_stats(*type);
    const Sums& sum = sums[type];
    const std::string name = type->ks_shortdesc;
    if (sum.count != now.numallocs - then.numallocs) return "count() of malloc, type " + name;
    if (sum.bytes != now.memalloced - then.memalloced) return "sum() of malloc, type " + name;
    if (sum.free_count != now.numfrees - then.numfrees) return "count() of free, type " + name;
    if (sum.free_bytes != now.memfreed - then.memfreed) return "sum() of free, type " + name;
  }
  return "";
}

TEST(StatsLaws, FiringsWithASizeAreTheGrowthOfTheCounters) {
  // REQ: LAW-5
  check_law(200, mixed_profile, counts_firings);
}

TEST(StatsLaws, FiringsWithASizeAreTheGrowthOfTheCounters_WhenMemoryRunsOut) {
  // REQ: LAW-5
  check_law(100, tight_profile, counts_firings);
}

}  // namespace
}  // namespace dtmalloc::support
