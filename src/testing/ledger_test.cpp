// SPDX-License-Identifier: BSD-2-Clause
// The fixture with a ledger, its helpers, and the sweep over failing allocations.

#include <dtmalloc/testing/ledger_test.hpp>
#include <map>
#include <utility>

namespace dtmalloc {
namespace {

KernelConfig with_ledger(KernelConfig config) {
  if (!config.ledger) config.ledger.emplace();
  return config;
}

KernelConfig small_machine() {
  KernelConfig config;
  config.mem = 512ull << 20;
  return config;
}

std::string findings_text(const Kernel& kernel) {
  std::string text;
  for (const Finding& finding : kernel.ledger()->findings()) text += to_string(finding);
  return text;
}

using Held = std::map<const malloc_type*, std::pair<std::int64_t, std::int64_t>>;

Held held_by_types(const Kernel& kernel) {
  Held held;
  for (const malloc_type* type : kernel.types()) {
    const TypeStats stats = kernel.type_stats(*type);
    held[type] = {static_cast<std::int64_t>(stats.numallocs - stats.numfrees),
                  static_cast<std::int64_t>(stats.memalloced - stats.memfreed)};
  }
  return held;
}

std::string more_or_less(std::int64_t number) {
  return (number < 0 ? "" : "+") + std::to_string(number);
}

// A line for each type that holds another amount than before. Empty: none does.
std::string changes(const Kernel& kernel, const Held& before) {
  std::string text;
  const Held after = held_by_types(kernel);
  for (const malloc_type* type : kernel.types()) {
    const auto then = before.find(type);
    const auto [blocks, bytes] = after.at(type);
    const auto [old_blocks, old_bytes] =
        then == before.end() ? std::pair<std::int64_t, std::int64_t>{} : then->second;
    if (blocks == old_blocks && bytes == old_bytes) continue;
    text += "  " + std::string(type->ks_shortdesc) + ": " + more_or_less(blocks - old_blocks) +
            " allocations, " + more_or_less(bytes - old_bytes) + " bytes\n";
  }
  return text;
}

// The ledger's blocks from an event on.
std::string blocks_since(const Kernel& kernel, std::uint64_t sequence) {
  std::string text;
  if (kernel.ledger() == nullptr) return text;
  for (const LedgerBlock& block : kernel.ledger()->live())
    if (block.allocated.sequence > sequence)
      text += "  " + block.type + ": " + std::to_string(block.request) + " bytes at " +
              stack_text(block.allocated.stack) + '\n';
  return text;
}

std::uint64_t last_event(const Kernel& kernel) {
  std::uint64_t last = 0;
  if (kernel.ledger() == nullptr) return last;
  for (const LedgerBlock& block : kernel.ledger()->live())
    last = std::max(last, block.allocated.sequence);
  return last;
}

}  // namespace

LedgerTest::LedgerTest() : LedgerTest(small_machine()) {}
LedgerTest::LedgerTest(KernelConfig config) : KernelTest(with_ledger(std::move(config))) {}

void LedgerTest::TearDown() {
  KernelTest::TearDown();
  if (findings_allowed_ || kernel().ledger() == nullptr) return;
  const std::string text = findings_text(kernel());
  if (!text.empty()) ADD_FAILURE() << "the ledger found\n" << text;
}

CallSite::CallSite(Kernel& kernel, std::string site) : thread_(kernel.cpus().current_thread()) {
  thread_.call_sites.push_back(std::move(site));
}
CallSite::~CallSite() { thread_.call_sites.pop_back(); }

::testing::AssertionResult no_leaks(const Kernel& kernel) {
  const std::string leaks = describe_leaks(kernel);
  if (leaks.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "there are live blocks\n" << leaks;
}

::testing::AssertionResult no_findings(const Kernel& kernel) {
  DTM_CHECK(kernel.ledger() != nullptr, "findings want KernelConfig::ledger");
  const std::string text = findings_text(kernel);
  if (text.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the ledger found\n" << text;
}

std::int64_t peak_bytes(const Kernel& kernel, const malloc_type& type) {
  DTM_CHECK(kernel.ledger() != nullptr, "peaks want KernelConfig::ledger");
  return kernel.ledger()->type(type).peak_bytes;
}

std::int64_t peak_blocks(const Kernel& kernel, const malloc_type& type) {
  DTM_CHECK(kernel.ledger() != nullptr, "peaks want KernelConfig::ledger");
  return kernel.ledger()->type(type).peak_blocks;
}

std::uint64_t for_each_failing_allocation(Kernel& kernel,
                                          const std::function<void(std::uint64_t n)>& body,
                                          const SweepOptions& options) {
  for (std::uint64_t n = 1;; ++n) {
    if (n > options.limit) {
      ADD_FAILURE() << "after " << options.limit << " failing allocations there are still more";
      return n - 1;
    }
    const Held before = held_by_types(kernel);
    const std::uint64_t event = last_event(kernel);
    const std::size_t found = kernel.ledger() == nullptr ? 0 : kernel.ledger()->findings().size();
    struct Plan {
      Kernel& kernel;
      FailureOutcome outcome = {};
      void end() { outcome = kernel.end_failure(); }
      ~Plan() { kernel.end_failure(); }
    } plan{kernel};
    kernel.plan_failure({n, options.type, options.site});
    std::string panic;
    try {
      body(n);
    } catch (const KernelPanic& caught) {
      panic = caught.what();
    }
    plan.end();
    const FailureOutcome& outcome = plan.outcome;
    const std::string where = outcome.failed
                                  ? "with allocation " + std::to_string(n) + " failing (" +
                                        outcome.type + " at " + stack_text(outcome.stack) + ")"
                                  : "with no allocation failing";
    if (!panic.empty()) {
      ADD_FAILURE() << where << " the machine panics: " << panic;
      return n - (outcome.failed ? 0 : 1);
    }
    const std::string held = changes(kernel, before);
    if (!held.empty())
      ADD_FAILURE() << where << " the types hold other blocks than before\n"
                    << held << blocks_since(kernel, event);
    if (kernel.ledger() != nullptr) {
      const std::vector<Finding> findings = kernel.ledger()->findings();
      for (std::size_t i = found; i < findings.size(); ++i)
        ADD_FAILURE() << where << " the ledger found\n" << to_string(findings[i]);
    }
    if (!outcome.failed) return n - 1;
  }
}

}  // namespace dtmalloc
