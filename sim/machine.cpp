// SPDX-License-Identifier: BSD-2-Clause
// Loading workloads and configuring machines.

#include "machine.hpp"

#include "output.hpp"

namespace dtmalloc::sim {

void tell(const Diagnostic& wrong) {
  print_error(wrong.where.file.empty() ? "dtmalloc: " + wrong.message + "\n" : to_string(wrong));
}

std::unique_ptr<workload::Trace> open_trace(const std::string& path, bool any) {
  auto trace = any ? workload::Trace::open_any(path) : workload::Trace::open(path);
  if (trace) return std::move(*trace);
  tell(trace.error());
  return nullptr;
}

std::optional<workload::Workload> load_workload(const std::string& path) {
  auto text = workload::read_text(path);
  if (!text) {
    tell(text.error());
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
  const auto tell = [](const std::string& option, const Diagnostic& wrong) {
    std::string text = option + ": " + wrong.message;
    if (!wrong.expected.empty()) text += ", expected " + wrong.expected;
    for (std::size_t i = 0; i < wrong.near_names.size(); ++i)
      text += (i == 0 ? "; did you mean " : ", ") + wrong.near_names[i];
    complain(text + (wrong.near_names.empty() ? "" : "?"));
  };
  const auto good = [&](const std::string& option) {
    const auto wrong = Kernel::check(config);
    if (wrong) tell(option, *wrong);
    return !wrong;
  };
  if (options.cpus) {
    config.cpus = *options.cpus;
    if (!good("--cpus")) return std::nullopt;
  }
  if (options.domains) {
    config.domains = *options.domains;
    if (!good("--domains")) return std::nullopt;
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
  if (options.ledger && !config.ledger) config.ledger.emplace();
  if (!options.config.empty()) {
    if (const auto set = config.set_options(options.config); !set) {
      tell("--config", set.error());
      return std::nullopt;
    }
  }
  config.invariants |= options.invariants;
  config.redzone |= options.redzone;
  config.memguard |= options.memguard;
  config.make_failures |= options.make_failures;
  if (options.maxzones) {
    config.maxzones = *options.maxzones;
    if (!good("--maxzones")) return std::nullopt;
  }
  for (const std::string& tunable : options.tunables) {
    const std::size_t equals = tunable.find('=');
    if (equals == tunable.npos) {
      complain("--tunable " + tunable + ": expected NAME=VALUE");
      return std::nullopt;
    }
    config.tunables.push_back({tunable.substr(0, equals), tunable.substr(equals + 1)});
    if (!good("--tunable")) return std::nullopt;
  }
  if (!good("the machine")) return std::nullopt;
  return config;
}

workload::KernelSettings machine_settings(const workload::Workload& workload,
                                          const MachineOptions& options) {
  workload::KernelSettings out = workload.kernel;
  const auto set = [](auto& slot, const auto& option) {
    if (option) slot = option;
  };
  set(out.cpus, options.cpus);
  set(out.domains, options.domains);
  set(out.release, options.release);
  set(out.mem, options.mem);
  set(out.seed, options.seed);
  set(out.real_clock, options.real_clock);
  set(out.maxzones, options.maxzones);
  if (!options.config.empty()) out.options = options.config;
  const auto on = [](std::optional<bool>& slot, bool option) {
    if (option) slot = true;
  };
  on(out.invariants, options.invariants);
  on(out.redzone, options.redzone);
  on(out.memguard, options.memguard);
  on(out.make_failures, options.make_failures);
  if (options.ledger && !out.ledger) out.ledger.emplace();
  for (const std::string& tunable : options.tunables) {
    const std::size_t equals = std::min(tunable.find('='), tunable.size());
    const std::string name = tunable.substr(0, equals);
    std::erase_if(out.tunables, [&](const Tunable& known) { return known.name == name; });
    out.tunables.push_back({name, tunable.substr(std::min(equals + 1, tunable.size()))});
  }
  return out;
}

void print_panic(const KernelPanic& panic) {
  std::string text = "panic: " + std::string(panic.what());
  if (!text.ends_with('\n')) text += '\n';
  for (const std::string& site : panic.backtrace()) text += "  at " + site + "\n";
  print_error(text);
}

}  // namespace dtmalloc::sim
