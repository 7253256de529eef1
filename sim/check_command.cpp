// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc check`: compiles a script against a machine, and says what a real kernel would surprise
// its user with. Nothing runs.

#include "commands.hpp"
#include "live_workload.hpp"
#include "machine.hpp"
#include "machine_run.hpp"

namespace dtmalloc::sim {
namespace {

// "s.d:3:10: warning: WHAT", the line, a caret, "instead: WHAT TO WRITE".
std::string warning_text(Diagnostic warning) {
  const std::string instead = std::move(warning.expected);
  warning.expected.clear();
  std::string text = to_string(warning);
  if (const std::size_t at = text.find("error: "); at != text.npos) text.replace(at, 5, "warning");
  return instead.empty() ? text : text + "  instead: " + instead + "\n";
}

}  // namespace

int check_command(const CheckOptions& options) {
  auto source = read_program({true, options.script}, options.args);
  if (!source) return kRefused;
  const auto workload = options.workload.empty()
                            ? live_workload(options.machine.cpus.value_or(KernelConfig{}.cpus))
                            : load_workload(options.workload);
  if (!workload) return kRefused;
  const auto config = machine_config(*workload, options.machine);
  if (!config) return kUsage;
  const InterruptGuard interrupts;
  const auto output = Output::open("", {});
  MachineRun machine(*workload, *config, *output, MachineRun::as_dtrace1);
  if (!machine.boot()) return kRefused;
  Tracing& tracing = machine.tracing();
  TracingOptions asked = options.tracing;
  // What the script's user will give it is not known yet.
  if (source->args.empty()) asked.settings.push_back({"-x", "defaultargs"});
  if (!tracing.set_options(asked) || !tracing.compile(*source)) return kRefused;
  const std::vector<Diagnostic> warnings = tracing.warnings();
  for (const Diagnostic& warning : warnings) output->write(warning_text(warning));
  if (!output->commit()) return kRefused;
  return options.strict && !warnings.empty() ? kStrict : kOk;
}

}  // namespace dtmalloc::sim
