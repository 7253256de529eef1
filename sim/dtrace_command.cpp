// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc dtrace`: dtrace(1) on a live machine, or on one that runs a workload.
// Counterpart:  dtrace.c (main)

#include <unistd.h>

#include <cstring>

#include "anonymous.hpp"
#include "commands.hpp"
#include "dtrace_options.hpp"
#include "live_workload.hpp"
#include "machine.hpp"
#include "machine_run.hpp"

namespace dtmalloc::sim {
namespace {

int fatal(const std::string& text) {
  print_error("dtrace: " + text + "\n");
  return kRefused;
}

// What needs a process, or a linker: why there is none. Empty: nothing is asked for.
std::string not_here(const DtraceOptions& options) {
  const std::string simulated = "the traced machine is simulated";
  if (options.mode == DtraceOptions::elf)
    return "-G is not supported: " + simulated + ", and no object file can carry probes into it";
  if (options.mode == DtraceOptions::header)
    return "-h is not supported: " + simulated + ", and has no statically defined probes of users";
  if (options.thirty_two)
    return "failed to initialize dtrace: Module and program data models do not match";
  if (!options.command.empty())
    return "-c " + options.command + " is not supported: " + simulated + ", and runs no commands";
  if (!options.process.empty())
    return "-p " + options.process + " is not supported: " + simulated + ", and has no processes";
  return {};
}

int trace(const DtraceOptions& options, MachineRun& machine, Output& output) {
  Tracing& tracing = machine.tracing();
  TracingOptions asked = options.tracing;
  if (asked.claim) {
    const auto enabling = kept_anonymous(anonymous_file(asked.anonymous));
    if (!enabling || !tracing.start_anonymous(*enabling)) return kRefused;
  }
  if (options.mode == DtraceOptions::list) asked.settings.push_back({"-l", "zdefs"});
  if (!tracing.set_options(asked)) return kRefused;
  for (const ProgramOption& program : asked.programs) {
    const auto source = read_program(program, asked.args);
    if (!source || !tracing.compile(*source)) return kRefused;
  }
  if (options.mode == DtraceOptions::anonymous) {
    const std::string file = anonymous_file(asked.anonymous);
    const std::string enabling = asked.programs.empty() ? "" : tracing.anonymous_enabling();
    return keep_anonymous(file, enabling) ? kOk : kRefused;
  }
  if (!options.output.empty()) {
    if (const int error = output.append_to(options.output); error != 0)
      return fatal("failed to open output file '" + options.output + "': " + std::strerror(error));
  }
  if (options.mode == DtraceOptions::list) {
    tracing.list(asked.verbose);
    return kOk;
  }
  if (!tracing.enable(asked)) return kRefused;
  if (!asked.execute) return kOk;
  if (!tracing.go()) return kRefused;
  const workload::Outcome& outcome = machine.run();
  if (outcome.error) return kRefused;
  if (outcome.panic) return kPanic;
  return tracing.exit_status() & 0xff;
}

}  // namespace

int dtrace_command(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_error(dtrace_usage());
    return kUsage;
  }
  auto parsed = parse_dtrace(words);
  if (!parsed) return kUsage;
  DtraceOptions& options = *parsed;
  const auto output = Output::open("", {});
  if (options.help || options.mode == DtraceOptions::version) {
    output->write(options.help ? dtrace_usage() : "dtrace: Sun D 1.13\n");
    return output->commit() ? kOk : kRefused;
  }
  if (const std::string reason = not_here(options); !reason.empty()) return fatal(reason);
  const auto workload = options.workload.empty()
                            ? live_workload(options.machine.cpus.value_or(KernelConfig{}.cpus))
                            : load_workload(options.workload);
  if (!workload) return kRefused;
  if (!options.machine.real_clock) options.machine.real_clock = true;
  const auto config = machine_config(*workload, options.machine);
  if (!config) return kUsage;
  const InterruptGuard interrupts;
  int status = kRefused;
  {
    MachineRun machine(*workload, *config, *output, MachineRun::as_dtrace1);
    if (machine.boot()) status = trace(options, machine, *output);
  }
  return output->commit() ? status : static_cast<int>(kRefused);
}

}  // namespace dtmalloc::sim
