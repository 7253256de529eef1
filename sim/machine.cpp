// SPDX-License-Identifier: BSD-2-Clause
// Loading workloads and configuring machines.

#include "machine.hpp"

#include "output.hpp"

namespace dtmalloc::sim {

std::optional<workload::Workload> load_workload(const std::string& path) {
  auto text = workload::read_text(path);
  if (!text) {
    print_error(text.error().where.line == 0 ? "dtmalloc: " + text.error().message + "\n"
                                             : to_string(text.error()));
    return std::nullopt;
  }
  auto parsed = workload::parse(std::move(*text), path == "-" ? "<stdin>" : path);
  if (!parsed) {
    print_error(to_string(parsed.error()));
    return std::nullopt;
  }
  return std::move(*parsed);
}

std::optional<KernelConfig> machine_config(const workload::Workload& workload,
                                           const MachineOptions& options) {
  KernelConfig config;
  workload.kernel.apply(config);
  config.fixed_cpus = true;
  // One after another, so that a message names the option.
  const auto good = [&config](const std::string& option) {
    const auto wrong = Kernel::check(config);
    if (wrong) complain(option + ": " + wrong->message + ", expected " + wrong->expected);
    return !wrong;
  };
  if (options.cpus) {
    config.cpus = *options.cpus;
    if (!good("--cpus")) return std::nullopt;
  }
  if (options.release) {
    config.release = *options.release;
    if (!good("--release")) return std::nullopt;
  }
  if (options.mem) {
    config.mem = *options.mem;
    if (!good("--mem")) return std::nullopt;
  }
  if (options.seed) config.seed = *options.seed;
  if (options.real_clock) config.real_clock = *options.real_clock;
  if (options.invariants) config.invariants = true;
  if (options.ledger && !config.ledger) config.ledger.emplace();
  if (!good("the machine")) return std::nullopt;
  return config;
}

void print_panic(const KernelPanic& panic) {
  std::string text = "panic: " + std::string(panic.what());
  if (!text.ends_with('\n')) text += '\n';
  for (const std::string& site : panic.backtrace()) text += "  at " + site + "\n";
  print_error(text);
}

}  // namespace dtmalloc::sim
