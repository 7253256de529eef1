// SPDX-License-Identifier: BSD-2-Clause
// A machine on the command line.

#include "machine_options.hpp"

#include <dtmalloc/sys/diagnostic.hpp>
#include <dtmalloc/workload/workload.hpp>

namespace dtmalloc::sim {

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& near : nearest_names(name, names)) {
    out += (out.empty() ? "; did you mean " : ", ") + near;
  }
  return out.empty() ? out : out + "?";
}

CLI::Validator quiet_check(CLI::Validator check) { return check.description(""); }

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

void add_machine_options(CLI::App& app, MachineOptions& machine, bool runs) {
  const auto read = [](std::optional<std::uint64_t>& slot, auto parse, const std::string& option,
                       const std::string& expected) {
    return [&slot, parse, option, expected](const CLI::results_t& values) {
      slot = parse(values.back());
      if (!slot)
        throw CLI::ValidationError(option, "'" + values.back() + "', expected " + expected);
      return true;
    };
  };
  app.add_option("--cpus", machine.cpus, "simulated CPUs, 1 to 1024")
      ->type_name("N")
      ->check(quiet_check(CLI::Range(1, 1024)));
  app.add_option("--domains", machine.domains, "NUMA domains, 1 to 8")->type_name("N");
  app.add_option("--release", machine.release, "FreeBSD release whose rules hold: 8, 12, 14, 16")
      ->type_name("N");
  app.add_option("--mem", read(machine.mem, workload::parse_size, "--mem", "a size: 512M, 2G, ..."),
                 "physical memory: 512M, 2G, ...")
      ->type_name("SIZE");
  app.add_option("--config", machine.config, "kernel configuration: GENERIC, GENERIC-NODEBUG")
      ->type_name("NAME");
  app.add_flag("--invariants", machine.invariants, "kernel option INVARIANTS");
  app.add_flag("--redzone", machine.redzone, "kernel option DEBUG_REDZONE");
  app.add_flag("--memguard", machine.memguard, "kernel option DEBUG_MEMGUARD");
  app.add_flag("--make-failures", machine.make_failures, "kernel option MALLOC_MAKE_FAILURES");
  app.add_option("--maxzones", machine.maxzones, "kernel option MALLOC_DEBUG_MAXZONES")
      ->type_name("N");
  app.add_option("--tunable", machine.tunables, "a line of loader.conf(5)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  if (!runs) return;
  app.add_option("--seed",
                 read(machine.seed, workload::parse_count, "--seed", "a number from 0 to 2^64-1"),
                 "seed of the run")
      ->type_name("N");
  app.add_flag("--ledger", machine.ledger, "books beyond the kernel: owners, peaks, findings");
  app.add_option_function<std::string>(
         "--clock", [&machine](const std::string& clock) { machine.real_clock = clock == "real"; },
         "virtual (default) or real")
      ->type_name("CLOCK")
      ->check(quiet_check(CLI::IsMember({"virtual", "real"})));
}

}  // namespace dtmalloc::sim
