// SPDX-License-Identifier: BSD-2-Clause
// The fixture: a machine, its console, and the check for leaks.

#include <dtmalloc/testing/kernel_test.hpp>

namespace dtmalloc {
namespace {

KernelConfig small_machine() {
  KernelConfig config;
  config.mem = 512ull << 20;
  return config;
}

}  // namespace

std::string describe_leaks(const Kernel& kernel) {
  std::string text;
  for (const Leak& leak : kernel.leaks()) {
    text += std::string(leak.type->ks_shortdesc) + ": " + std::to_string(leak.allocations) +
            " allocations, " + std::to_string(leak.bytes) + " bytes\n";
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
