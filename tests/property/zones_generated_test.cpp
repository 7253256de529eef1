// SPDX-License-Identifier: BSD-2-Clause
// Generated workloads with zones, malloc(9) and reclaims among each other: the laws over all
// structures hold after every run, and after everything is freed no zone holds an item.

#include <gtest/gtest.h>

#include <dtmalloc/workload/generate.hpp>
#include <dtmalloc/workload/run.hpp>

#include "support/laws.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc::support {
namespace {

workload::GenerateOptions options(std::uint64_t seed) {
  workload::GenerateOptions o;
  o.seed = seed;
  o.operations = 600;
  o.zones = static_cast<int>(1 + seed % 7);
  o.zone_share = static_cast<int>(20 + seed % 60);
  o.threads = static_cast<int>(seed % 4);
  o.domains = seed % 5 == 0 ? 2 : 1;
  o.wave = seed % 2 == 0 ? 150 : 0;
  o.invariants = seed % 2 == 1;
  o.free_all = seed % 3 == 0;
  o.mem = std::uint64_t{256} << 20;
  return o;
}

// REQ: LAW-2, LAW-3
TEST(GeneratedZones, KeepTheLawsOfAllStructures) {
  std::uint64_t zone_requests = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const workload::GenerateOptions o = options(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const workload::Workload w = workload::generate(o);
    KernelConfig config;
    w.kernel.apply(config);
    config.fixed_cpus = true;
    Kernel kernel(config);
    kernel.cpus().bind(0);
    kernel.cpus().set_console([](std::string_view) {});
    workload::Runner runner(w, kernel);
    ASSERT_TRUE(runner.boot());
    const workload::Outcome outcome = runner.run();
    ASSERT_FALSE(outcome.panic) << outcome.panic->what() << '\n' << workload::print(w);
    ASSERT_FALSE(outcome.error) << to_string(*outcome.error);
    ASSERT_EQ(check_vm(kernel.vm()), "") << workload::print(w);
    for (const ZoneStats& zone : kernel.zones()) {
      if (!zone.name.starts_with("gen zone ")) continue;
      zone_requests += zone.requests;
      EXPECT_LE(zone.frees, zone.allocs) << zone.name;
      if (o.free_all) {
        EXPECT_EQ(zone.used, 0u) << zone.name << '\n' << workload::print(w);
      }
    }
  }
  EXPECT_GT(zone_requests, 5000u);
}

}  // namespace
}  // namespace dtmalloc::support
