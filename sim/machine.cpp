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
  if (options.cpus) config.cpus = *options.cpus;
  if (options.release) config.release = *options.release;
  if (options.mem) config.mem = *options.mem;
  if (options.seed) config.seed = *options.seed;
  if (options.real_clock) config.real_clock = *options.real_clock;
  if (options.invariants) config.invariants = true;
  if (const auto wrong = Kernel::check(config)) {
    print_error("dtmalloc: " + to_string(*wrong));
    return std::nullopt;
  }
  return config;
}

void print_panic(const KernelPanic& panic) {
  std::string text = "panic: " + std::string(panic.what());
  if (!text.ends_with('\n')) text += '\n';
  for (const std::string& site : panic.backtrace()) text += "  at " + site + "\n";
  print_error(text);
}

}  // namespace dtmalloc::sim
