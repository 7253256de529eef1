// SPDX-License-Identifier: BSD-2-Clause
// parse(print(x)) == x for generated workloads, and a printed workload runs as the first one did.
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>
#include <dtmalloc/workload/run.hpp>

#include "support/op_gen.hpp"

namespace dtmalloc::support {
namespace {

// REQ: WL-07
TEST(RoundTrip, PrintedWorkloadsParseToThemselves) {
  const Law law = [](const workload::Workload& w) -> std::string {
    const std::string text = print(w);
    const auto again = workload::parse(text, "printed.wl");
    if (!again) return to_string(again.error());
    if (!(*again == w)) return "another workload\n";
    return print(*again) == text ? "" : "another text\n";
  };
  check_law(20, mixed_profile, law);
  check_law(20, threads_profile, law);
}

// The types' rows after a run, and how it ended.
std::string outcome(const workload::Workload& w) {
  KernelConfig config;
  w.kernel.apply(config);
  config.fixed_cpus = true;
  Kernel kernel(config);
  kernel.cpus().bind(0);
  kernel.cpus().set_console([](std::string_view) {});
  workload::Runner runner(w, kernel);
  if (auto booted = runner.boot(); !booted) return to_string(booted.error());
  const workload::Outcome end = runner.run();
  return (end.panic ? std::string(end.panic->what()) : std::string()) +
         (end.error ? to_string(*end.error) : std::string()) +
         std::to_string(kernel.cpus().clock().now()) + "\n" +
         print_vmstat_m_json(report::take_snapshot(kernel), 2);
}

// REQ: WL-21
TEST(RoundTrip, TheSameWorkloadRunsTheSameWay) {
  const Law law = [](const workload::Workload& w) -> std::string {
    const auto again = workload::parse(print(w), w.file);
    if (!again) return to_string(again.error());
    const std::string first = outcome(w), second = outcome(*again);
    return first == second ? "" : first + second;
  };
  check_law(5, mixed_profile, law);
  check_law(5, threads_profile, law);
}

}  // namespace
}  // namespace dtmalloc::support
