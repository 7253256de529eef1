// SPDX-License-Identifier: BSD-2-Clause
// A recorded run, replayed, ends as the run did: text and binary.
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>
#include <dtmalloc/workload/trace.hpp>
#include <memory>

#include "support/op_gen.hpp"

namespace dtmalloc::support {
namespace {

using workload::TraceFormat;

struct Ended {
  std::string report;
  bool refused = false;
};

std::unique_ptr<Kernel> machine(const workload::Workload& head) {
  KernelConfig config;
  head.kernel.apply(config);
  config.fixed_cpus = true;
  auto kernel = std::make_unique<Kernel>(config);
  kernel->cpus().bind(0);
  kernel->cpus().set_console([](std::string_view) {});
  return kernel;
}

// How it ended, when, and what the tables say.
Ended ended(Kernel& kernel, const workload::Outcome& outcome) {
  const report::Snapshot snapshot = report::take_snapshot(kernel);
  return {(outcome.panic ? std::string(outcome.panic->what()) + "\n" : std::string()) +
              (outcome.error ? to_string(*outcome.error) : std::string()) +
              std::to_string(kernel.cpus().clock().now()) + "\n" +
              print_vmstat_m_json(snapshot, 2) + print_vmstat_z(snapshot, 2),
          outcome.error && outcome.error->tag == "WL_RECORD"};
}

Ended replayed(const std::string& bytes) {
  auto trace = workload::Trace::from_memory(bytes, "recorded");
  if (!trace) return {to_string(trace.error())};
  const auto kernel = machine((*trace)->head());
  workload::Runner runner((*trace)->head(), *kernel);
  if (auto booted = runner.boot(); !booted) return {to_string(booted.error())};
  return ended(*kernel, workload::Replayer(**trace, runner).run());
}

std::string law(const workload::Workload& w) {
  const auto kernel = machine(w);
  workload::Runner runner(w, *kernel);
  if (auto booted = runner.boot(); !booted) return to_string(booted.error());
  const Ended run = ended(*kernel, runner.run());
  std::string texts[2];
  for (const TraceFormat format : {TraceFormat::text, TraceFormat::binary}) {
    std::string bytes;
    const workload::TraceSink sink = [&](std::string_view text) { bytes += text; };
    const auto recorder = machine(w);
    const auto outcome = workload::record(w, *recorder, {}, format, sink);
    if (!outcome) return to_string(outcome.error());
    const Ended recorded = ended(*recorder, *outcome);
    if (recorded.refused) return "";  // said so
    if (recorded.report != run.report)
      return "recording changes the run:\n" + run.report + recorded.report;
    const Ended replay = replayed(bytes);
    if (replay.report != run.report) return "run:\n" + run.report + "replay:\n" + replay.report;
    // A text that is recorded is a workload, and runs as one.
    if (format == TraceFormat::text) {
      const auto parsed = workload::parse(bytes, "recorded");
      if (!parsed) return to_string(parsed.error());
      const auto again = machine(*parsed);
      workload::Runner flat(*parsed, *again);
      if (auto booted = flat.boot(); !booted) return to_string(booted.error());
      const Ended second = ended(*again, flat.run());
      if (second.report != run.report)
        return "run:\n" + run.report + "run of the recorded text:\n" + second.report;
    }
    auto trace = workload::Trace::from_memory(bytes, "recorded");
    const auto converted = workload::convert(
        **trace, TraceFormat::text,
        [&](std::string_view text) { texts[format == TraceFormat::text ? 0 : 1] += text; });
    if (!converted) return to_string(converted.error());
  }
  return texts[0] == texts[1] ? "" : "text:\n" + texts[0] + "binary:\n" + texts[1];
}

// REQ: TRACE-07
TEST(Traces, ARecordedRunReplaysAsItRan) {
  check_law(10, mixed_profile, law);
  check_law(5, tight_profile, law);
  check_law(5, domains_profile, law);
  check_law(10, threads_profile, law);
}

// REQ: TRACE-07
TEST(Traces, LoopsDrawsAndPausesAreCarried) {
  const char* const texts[] = {
      "type M_A \"a\"\nrepeat 300 as i { x[i] = malloc uniform(1,5000) M_A M_WAITOK @f+0x1;g\n"
      "wait uniform(1us,70ms) }\nrepeat 300 as i { cpu i%4\n free x[299-i] }\n",
      "repeat 50 as i { repeat 3 as j { y[i,j] = malloc choice(16,99) M_TEMP M_WAITOK } }\n"
      "wait 100s\nrepeat 50 as i { free y[i,2] }\ntype M_L \"l\"\nrepeat 3 { l = malloc 5 M_L "
      "M_NOWAIT }\nunload M_L\nload M_L\nexpect inuse(M_L) == 0\n",
      "kernel cpus=3 cost=0ns\nthread \"a\" cpu=1 { repeat 40 as i { x[i] = malloc 64 M_TEMP "
      "M_WAITOK\n wait 3us } }\nthread \"b\" cpu=2 { repeat 40 as i { free x[i] } }\njoin\n"
      "zone Z \"z\" size=64\nz[uniform(1,9)] = uma_zalloc Z M_NOWAIT\nreclaim drain\n",
      "kernel cpus=2 cost=1us\nthread \"w\" cpu=1 { repeat 20 as i { a[i] = malloc 64 M_TEMP "
      "M_WAITOK\n expect inuse(M_TEMP) > 0 } }\nrepeat 20 as i { b[i] = malloc 64 M_TEMP "
      "M_WAITOK\n expect inuse(M_TEMP) > 0 }\njoin\nwait 1s\nreclaim drain\nwait 5us\n",
      "repeat 3 as i { a[i] = malloc 70000 M_TEMP M_WAITOK }\nfree a[1]\nfree a[1]\n"};
  for (const char* text : texts) {
    const auto parsed = workload::parse(text, "t.wl");
    ASSERT_TRUE(parsed) << to_string(parsed.error());
    EXPECT_EQ(law(*parsed), "") << text;
  }
}

// REQ: TRACE-08
TEST(Traces, WhatNoFlatTraceCarriesIsRefused) {
  const struct {
    const char *text, *at;
  } cases[] = {
      {"critical { a = malloc 1 M_TEMP M_NOWAIT }\n", "critical { a = malloc 1 M_TEMP M_NOWAIT }"},
      {"kernel domains=2\nthread \"t\" { }\n", "thread \"t\" { }"},
      {"expect uniform(1,2) == 1\n", "expect uniform(1,2) == 1"}};
  for (const auto& c : cases) {
    const auto parsed = workload::parse(c.text, "t.wl");
    ASSERT_TRUE(parsed);
    const auto kernel = machine(*parsed);
    const auto outcome =
        workload::record(*parsed, *kernel, {}, TraceFormat::text, [](std::string_view) {});
    ASSERT_TRUE(outcome && outcome->error) << c.text;
    EXPECT_EQ(outcome->error->tag, "WL_RECORD");
    EXPECT_EQ(outcome->error->source_line, c.at);
  }
  const auto real = workload::parse("kernel clock=real\ncpu 0\n", "t.wl");
  const auto kernel = machine(*real);
  EXPECT_FALSE(workload::record(*real, *kernel, {}, TraceFormat::text, [](std::string_view) {}));
}

}  // namespace
}  // namespace dtmalloc::support
