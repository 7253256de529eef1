// SPDX-License-Identifier: BSD-2-Clause
// Captured zones come to life: what a run of the imported workload leaves is what was captured.
#include <gtest/gtest.h>

#include <algorithm>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/run.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "support/paths.hpp"

namespace dtmalloc::workload {
namespace {

std::string capture(const std::string& name) {
  std::ifstream in(support::source_dir() + "/tests/golden/cases/vmstat-z/" + name + ".txt");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Imported {
  explicit Imported(const std::string& text) {
    auto parsed = parse(text, "t.wl");
    EXPECT_TRUE(parsed) << (parsed ? "" : to_string(parsed.error()));
    if (!parsed) return;
    workload = std::move(*parsed);
    KernelConfig config;
    workload.kernel.apply(config);
    config.fixed_cpus = true;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    Runner runner(workload, *kernel, RunHooks{nullptr, {}, [](const Diagnostic& d) {
                                                ADD_FAILURE() << to_string(d);
                                              }});
    EXPECT_TRUE(runner.boot());
    const Outcome outcome = runner.run();
    EXPECT_FALSE(outcome.error) << to_string(*outcome.error);
    EXPECT_FALSE(outcome.panic) << outcome.panic->what();
  }
  Workload workload;
  std::unique_ptr<Kernel> kernel;
};

// "# N free here" behind a row's figures, where the captured number cannot be reached.
std::map<std::string, std::uint64_t> other_free(const std::string& text) {
  std::map<std::string, std::uint64_t> out;
  std::istringstream lines(text);
  std::string line, zone;
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(": used ");
    if (line.starts_with("# ") && colon != line.npos) zone = line.substr(2, colon - 2);
    if (line.find(" free here:") != line.npos) out[zone] = std::stoull(line.substr(2));
  }
  return out;
}

// REQ: ZIMPORT-16
TEST(ImportedZones, HoldWhatWasCaptured) {
  int checked = 0;
  for (const char* name : {"01", "02", "03", "05", "06", "08", "10", "11"}) {
    const std::string text = capture(name);
    const auto imported = import_vmstat_z(text, name, {});
    ASSERT_TRUE(imported);
    const Imported run(imported->text);
    const auto free = other_free(imported->text);
    std::map<std::string, int> rows;
    for (const ZoneRow& row : read_vmstat_z(text, name).rows) ++rows[row.name];
    for (const ZoneRow& row : read_vmstat_z(text, name).rows) {
      const bool own = row.name.starts_with("UMA ") || row.name.ends_with(" Bucket");
      if (own || row.capture > 0 || (rows[row.name] > 1 && row.name != "socket")) continue;
      const std::vector<ZoneStats> zones = run.kernel->zones();
      const auto zone = std::find_if(zones.begin(), zones.end(), [&](const ZoneStats& each) {
        return each.name == row.name && each.size == row.size;
      });
      ASSERT_NE(zone, zones.end()) << name << " " << row.name;
      EXPECT_EQ(zone->used, row.used) << name << " " << row.name;
      EXPECT_EQ(zone->limit, row.limit) << name << " " << row.name;
      EXPECT_EQ(zone->fail, 0u) << name << " " << row.name;
      if (row.size <= 4096 && row.limit == 0 && !row.name.ends_with(" pcpu")) {
        const auto other = free.find(row.name);
        EXPECT_EQ(zone->free, other != free.end() ? other->second : row.free)
            << name << " " << row.name;
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 53);
}

// REQ: ZIMPORT-15
TEST(ImportedZones, ALimitThatIsReached) {
  const auto imported = import_vmstat_z(capture("16"), "16", {});
  ASSERT_TRUE(imported);
  Imported(imported->text + R"(n = uma_zalloc Z_MBUF_JUMBO_PAGE M_NOWAIT
expect null(n) && fails("mbuf_jumbo_page") == 1 && sleeps("mbuf_jumbo_page") == 0
thread "waiter" { w = uma_zalloc Z_MBUF_JUMBO_PAGE M_WAITOK }
wait 1ms
uma_zfree Z_MBUF_JUMBO_PAGE mbuf_jumbo_page[0]
join
expect !null(w) && fails("mbuf_jumbo_page") == 1 && sleeps("mbuf_jumbo_page") == 1
c = uma_zalloc Z_MBUF_CLUSTER M_NOWAIT
expect !null(c) && fails("mbuf_cluster") == 0
)");
}

}  // namespace
}  // namespace dtmalloc::workload
