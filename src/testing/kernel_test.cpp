// SPDX-License-Identifier: BSD-2-Clause
// The fixture: a machine, its console, and the check for leaks.

#include <dtmalloc/testing/kernel_test.hpp>
#include <map>
#include <utility>

namespace dtmalloc {
namespace {

KernelConfig small_machine() {
  KernelConfig config;
  config.mem = 512ull << 20;
  return config;
}

// A line for each call site and request.
std::string sites_of(const Ledger& ledger, const std::string& type) {
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> counts;
  for (const LedgerBlock& block : ledger.live())
    if (block.type == type) ++counts[{stack_text(block.allocated.stack), block.request}];
  std::string text;
  for (const auto& [key, count] : counts)
    text += "  " + std::to_string(count) + " of " + std::to_string(key.second) + " bytes at " +
            key.first + '\n';
  return text;
}

}  // namespace

std::string describe_leaks(const Kernel& kernel) {
  std::string text;
  for (const Leak& leak : kernel.leaks()) {
    text += std::string(leak.type->ks_shortdesc) + ": " + std::to_string(leak.allocations) +
            " allocations, " + std::to_string(leak.bytes) + " bytes\n";
    if (kernel.ledger() != nullptr) text += sites_of(*kernel.ledger(), leak.type->ks_shortdesc);
  }
  return text;
}

KernelTest::KernelTest() : KernelTest(small_machine()) {}

KernelTest::KernelTest(const KernelConfig& config) { boot(config); }

KernelTest::~KernelTest() {
  if (kernel_) kernel_->cpus().unbind();
}

void KernelTest::boot(const KernelConfig& config) {
  kernel_ = std::make_unique<Kernel>(config);
  // The sink may outlive neither: it shares what it writes to.
  kernel_->cpus().set_console([console = console_](std::string_view text) {
    const std::lock_guard lock(console->mutex);
    console->text += text;
  });
  kernel_->cpus().bind(0);
}

void KernelTest::reboot(const KernelConfig& config) {
  check_leaks();
  kernel_->cpus().unbind();
  kernel_.reset();
  boot(config);
}

std::string KernelTest::console() const {
  const std::lock_guard lock(console_->mutex);
  return console_->text;
}

std::string KernelTest::take_console() {
  const std::lock_guard lock(console_->mutex);
  return std::exchange(console_->text, {});
}

void KernelTest::check_leaks() {
  if (leaks_allowed_) return;
  const std::string leaks = describe_leaks(*kernel_);
  if (!leaks.empty()) ADD_FAILURE() << "the test leaves blocks behind\n" << leaks;
}

void KernelTest::TearDown() { check_leaks(); }

}  // namespace dtmalloc
