// SPDX-License-Identifier: BSD-2-Clause
// Captured tables of vmstat -m come back from a simulated kernel.
#include <gtest/gtest.h>

#include <dtmalloc/report/report.hpp>
#include <dtmalloc/workload/generate.hpp>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/run.hpp>
#include <fstream>
#include <memory>
#include <sstream>

#include "support/paths.hpp"

namespace dtmalloc {
namespace {

std::string capture(const std::string& name) {
  std::ifstream in(dtmalloc::support::source_dir() + "/tests/golden/cases/vmstat-m/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::unique_ptr<Kernel> run(const std::string& text) {
  auto w = workload::parse(text, "t.wl");
  EXPECT_TRUE(w) << (w ? "" : to_string(w.error()));
  if (!w) return nullptr;
  KernelConfig config;
  config.fixed_cpus = true;
  w->kernel.apply(config);
  auto kernel = std::make_unique<Kernel>(config);
  kernel->cpus().bind(0);
  workload::Runner runner(*w, *kernel);
  EXPECT_TRUE(runner.boot());
  const workload::Outcome outcome = runner.run();
  EXPECT_FALSE(outcome.error) << to_string(*outcome.error);
  EXPECT_FALSE(outcome.panic) << outcome.panic->what();
  return kernel;
}

// REQ: VMSTAT-17
TEST(Vmstat, EveryCaptureComesBack) {
  for (const char* file : {"01.txt", "02.txt", "04.txt", "05.txt", "06.txt", "07.txt", "09.txt",
                           "10.txt", "12.txt", "15.txt"}) {
    for (const bool replay : {false, true}) {
      std::string text = capture(file);
      // Billions of past requests are not replayed one by one here.
      if (replay && std::string_view(file) == "01.txt") continue;
      auto imported = workload::import_vmstat_m(text, file, {.replay_history = replay});
      ASSERT_TRUE(imported) << file;
      const auto kernel = run(imported->text);
      ASSERT_NE(kernel, nullptr);
      const report::Snapshot snapshot = report::take_snapshot(*kernel);
      const workload::VmstatTable before = workload::read_vmstat_m(text, file);
      const int format = before.rows[0].format == workload::VmstatFormat::m3 ? 1 : 0;
      const workload::VmstatTable after =
          workload::read_vmstat_m(report::print_vmstat_m(snapshot, format), file);
      ASSERT_EQ(after.rows.size(), before.rows.size()) << file;
      for (std::size_t i = 0; i < after.rows.size(); ++i) {
        const workload::VmstatRow &x = before.rows[i], &y = after.rows[i];
        EXPECT_EQ(x.name, y.name) << file;
        EXPECT_EQ(x.inuse, y.inuse) << file << ' ' << x.name;
        EXPECT_EQ(x.memuse_kib, y.memuse_kib) << file << ' ' << x.name;
        EXPECT_EQ(x.requests, y.requests) << file << ' ' << x.name;
        EXPECT_EQ(x.sizes, y.sizes) << file << ' ' << x.name;
      }
    }
  }
}

// REQ: VMSTAT-18
TEST(Vmstat, TheDocumentOf16ComesBackToTheByte) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    workload::GenerateOptions options;
    options.seed = seed;
    options.operations = 20 + seed * 7;
    options.free_share = static_cast<int>(seed % 50);
    const auto live = run(workload::generate_text(options));
    ASSERT_NE(live, nullptr);
    const std::string before = report::print_vmstat_m_json(report::take_snapshot(*live), 2);
    const auto imported = workload::import_vmstat_m(before, "live", {});
    ASSERT_TRUE(imported) << before;
    const auto again = run(imported->text);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(report::print_vmstat_m_json(report::take_snapshot(*again), 2), before) << seed;
    EXPECT_EQ(imported->text.find("no set of blocks"), std::string::npos) << imported->text;
  }
}

// REQ: VMSTAT-05
TEST(Vmstat, TypesThatOnlyFailedAreNotPrinted) {
  const auto kernel = run(R"(kernel cpus=1 mem=1M
type M_A "a"
type M_B "b"
repeat 300 { x = malloc 4096 M_A M_NOWAIT }
y = malloc 3000 M_B M_NOWAIT
expect null(y)
)");
  ASSERT_NE(kernel, nullptr);
  EXPECT_NE(kernel->type_stats(*kernel->type("b")).size_mask, 0u);
  const std::string table = report::print_vmstat_m(report::take_snapshot(*kernel), 2);
  EXPECT_NE(table.find("               a "), std::string::npos) << table;
  EXPECT_EQ(table.find("               b "), std::string::npos) << table;
}

// REQ: VMSTAT-08
TEST(Vmstat, OnlyClassesAreSizes) {
  const auto kernel = run(R"(kernel cpus=1 mem=1G
type M_A "a"
x = malloc 70000 M_A M_WAITOK
y = contigmalloc 5000 M_A M_WAITOK
z = malloc_exec 100 M_A M_WAITOK
)");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(report::print_vmstat_m(report::take_snapshot(*kernel), 1),
            "         Type InUse MemUse Requests  Size(s)\n"
            "            a     3    84K        3  \n");
}

// REQ: VMSTAT-06
TEST(Vmstat, RowsStandInOrderOfRegistration) {
  const auto kernel = run(R"(type M_Z "z"
type M_A "same"
type M_A2 "same"
type M_TEMP "temp"
a = malloc 16 M_TEMP M_WAITOK
a = malloc 16 M_A2 M_WAITOK
a = malloc 32 M_A M_WAITOK
a = malloc 16 M_Z M_WAITOK
)");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(report::print_vmstat_m(report::take_snapshot(*kernel), 1),
            "         Type InUse MemUse Requests  Size(s)\n"
            "            z     1     1K        1  16\n"
            "         same     1     1K        1  32\n"
            "         same     1     1K        1  16\n"
            "         temp     1     1K        1  16\n");
}

}  // namespace
}  // namespace dtmalloc
