// SPDX-License-Identifier: BSD-2-Clause
// The ledger against the flat model; and machines with and without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/report/report.hpp>
#include <dtmalloc/workload/run.hpp>
#include <map>

#include "support/op_gen.hpp"
#include "support/replay.hpp"

namespace dtmalloc::support {
namespace {

using workload::Workload;

std::string live_differs(Replay& replay) {
  const std::vector<LedgerBlock> live = replay.kernel().ledger()->live();
  const auto& model = replay.model().live();
  if (live.size() != model.size())
    return "the ledger has " + std::to_string(live.size()) + " blocks, the model " +
           std::to_string(model.size());
  auto expected = model.begin();
  for (const LedgerBlock& block : live) {
    const auto& [address, flat] = *expected++;
    if (block.host != reinterpret_cast<const void*>(address)) return "another address lives";
    if (block.bytes != flat.size) return "a block has another size";
    if (block.type != replay.types()[static_cast<std::size_t>(flat.type)]->ks_shortdesc)
      return "a block has another type";
  }
  return "";
}

// The largest sums that the model's own events reach.
struct Maxima {
  struct Sum {
    std::int64_t blocks = 0, bytes = 0, peak_blocks = 0, peak_bytes = 0;
    void add(std::int64_t n, std::int64_t size) {
      blocks += n;
      bytes += size;
      peak_blocks = std::max(peak_blocks, blocks);
      peak_bytes = std::max(peak_bytes, bytes);
    }
  };
  std::map<int, Sum> types;
  Sum total;
  void take(Replay& replay) {
    for (const reference::FlatFiring& firing : replay.model().take_firings()) {
      if (firing.size == 0) continue;
      const std::int64_t sign = firing.is_free ? -1 : 1;
      const std::int64_t bytes = sign * static_cast<std::int64_t>(firing.size);
      types[firing.type].add(sign, bytes);
      total.add(sign, bytes);
    }
  }
};

std::string differs(const LedgerType& got, const Maxima::Sum& expected) {
  const auto text = [&](const char* what, std::int64_t a, std::int64_t b) {
    return a == b ? std::string()
                  : "type " + got.name + ", " + what + ": " + std::to_string(a) + ", expected " +
                        std::to_string(b);
  };
  std::string wrong = text("blocks", got.blocks, expected.blocks);
  if (wrong.empty()) wrong = text("bytes", got.bytes, expected.bytes);
  if (wrong.empty()) wrong = text("peak of blocks", got.peak_blocks, expected.peak_blocks);
  if (wrong.empty()) wrong = text("peak of bytes", got.peak_bytes, expected.peak_bytes);
  return wrong;
}

std::string ledger_is_the_model(const Workload& workload) {
  Maxima maxima;
  Replay replay(workload, {.probes = false,
                           .invariants = std::nullopt,
                           .ledger = LedgerConfig{},
                           .after_step = [&](Replay& now) {
                             maxima.take(now);
                             return live_differs(now);
                           }});
  std::string problem = replay.run();
  if (!problem.empty()) return problem;
  const Ledger& ledger = *replay.kernel().ledger();
  for (const auto& [type, sum] : maxima.types) {
    problem = differs(ledger.type(*replay.types()[static_cast<std::size_t>(type)]), sum);
    if (!problem.empty()) return problem;
  }
  problem = differs(ledger.total(), maxima.total);
  if (!problem.empty()) return problem;
  std::uint64_t wrong_frees = 0, found = 0;
  for (const auto& op : workload.bodies[0])
    if (op.kind == workload::OpKind::free && op.type != workload::kNone) ++wrong_frees;
  for (const Finding& finding : ledger.findings()) {
    if (finding.kind != Finding::Kind::wrong_type) return summary(finding);
    found += finding.count;
  }
  if (wrong_frees == 0 && found != 0) return "a wrong type is reported and there is none";
  return "";
}

TEST(LedgerLaws, LiveBlocksAndPeaksAreTheModels) {
  // REQ: LEDGER-1 LEDGER-2
  check_law(150, mixed_profile, ledger_is_the_model);
}

TEST(LedgerLaws, LiveBlocksAndPeaksAreTheModels_WhenMemoryRunsOut) {
  // REQ: LEDGER-1 LEDGER-2
  check_law(60, tight_profile, ledger_is_the_model);
}

// All that a run shows: the tables, the zones, the output of a D program.
std::string shown(const Workload& workload, bool with_ledger,
                  const std::function<void(KernelConfig&)>& change = {}) {
  KernelConfig config;
  config.fixed_cpus = true;
  workload.kernel.apply(config);
  if (change) change(config);
  if (with_ledger) config.ledger = LedgerConfig{.series = 1000};
  Kernel kernel(config);
  std::string text;
  kernel.cpus().set_console([&](std::string_view said) { text += said; });
  kernel.cpus().bind(0);
  workload::Runner runner(workload, kernel);
  if (auto booted = runner.boot(); !booted) return booted.error().message;
  {
    dtrace::Framework framework(kernel.cpus(), kernel.addresses());
    framework.load_standard_providers();
    dtrace::load_dtmalloc(framework, kernel);
    dtrace::Session session(framework, {.out = [&](std::string_view said) { text += said; },
                                        .err = [&](std::string_view said) { text += said; }});
    dtrace::ProgramSource source;
    source.text =
        "dtmalloc:::{printf(\"%d %d %s %s %d %d\\n\", timestamp, cpu, probefunc, probename, "
        "args[3], args[4]); @[probefunc, probename] = sum(args[3]);}";
    auto program = session.compile(source);
    if (!program) return program.error().message;
    if (auto enabled = session.enable(*program); !enabled) return enabled.error().message;
    if (auto gone = session.go(); !gone) return gone.error().message;
    const workload::Outcome outcome = runner.run();
    if (outcome.panic) text += std::string("panic: ") + outcome.panic->what() + '\n';
    if (outcome.error) text += outcome.error->message + '\n';
    try {
      session.stop();
    } catch (const KernelPanic&) {
    }
  }
  const report::Snapshot snapshot = report::take_snapshot(kernel);
  text += report::print_vmstat_m(snapshot, snapshot.vmstat_format);
  text += report::print_vmstat_m_json(snapshot, 2);
  text += report::print_vmstat_z_json(snapshot, 2) + report::print_ddb_uma(snapshot, true);
  for (const ZoneStats& z : kernel.zones()) {
    text += z.name + ' ' + std::to_string(z.keg_pages) + ' ' + std::to_string(z.keg_free_items) +
            ' ' + std::to_string(z.bucket_cache_items);
    for (const ZoneStats::Cpu& cpu : z.cpus)
      text += ' ' + std::to_string(cpu.allocs) + ',' + std::to_string(cpu.frees) + ',' +
              std::to_string(cpu.items);
    text += '\n';
  }
  text += std::to_string(kernel.free_pages()) + ' ' + std::to_string(kernel.uma_kmem_total()) +
          ' ' + std::to_string(kernel.cpus().clock().now()) + '\n';
  kernel.cpus().unbind();
  return text;
}

std::string first_difference(const std::string& a, const std::string& b) {
  if (a == b) return "";
  const auto at = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const std::size_t from = a.rfind('\n', at) == a.npos ? 0 : a.rfind('\n', at) + 1;
  return "with the ledger the run shows something else: " + b.substr(from, 80) + " instead of " +
         a.substr(from, 80);
}

std::string ledger_changes_nothing(const Workload& workload) {
  return first_difference(shown(workload, false), shown(workload, true));
}

TEST(LedgerLaws, ARunShowsTheSameWithAndWithoutIt) {
  // REQ: LEDGER-3
  check_law(40, mixed_profile, ledger_changes_nothing);
}

TEST(LedgerLaws, ARunShowsTheSameWithAndWithoutIt_WithThreads) {
  // REQ: LEDGER-3
  check_law(30, threads_profile, ledger_changes_nothing);
}

TEST(LedgerLaws, ARunShowsTheSameWithAndWithoutIt_UnderDebuggingOptions) {
  // REQ: LEDGER-3
  const std::pair<const char*, std::function<void(KernelConfig&)>> options[] = {
      {"redzone", [](KernelConfig& config) { config.redzone = true; }},
      {"memguard",
       [](KernelConfig& config) {
         config.memguard = true;
         config.tunables = {{"vm.memguard.frequency", "30000"}};
       }},
      {"two domains", [](KernelConfig& config) { config.domains = 2; }}};
  for (const auto& [name, change] : options) {
    SCOPED_TRACE(name);
    check_law(15, mixed_profile, [&change = change](const Workload& workload) {
      return first_difference(shown(workload, false, change), shown(workload, true, change));
    });
  }
  check_law(15, domains_profile, ledger_changes_nothing);
}

TEST(LedgerLaws, ARunShowsTheSameWithAndWithoutIt_WhenMemoryRunsOut) {
  // REQ: LEDGER-3
  check_law(30, tight_profile, ledger_changes_nothing);
}

}  // namespace
}  // namespace dtmalloc::support
