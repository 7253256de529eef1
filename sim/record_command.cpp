// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc record`: a run as a trace, and traces from one form to the other.

#include <cstring>
#include <dtmalloc/workload/trace.hpp>

#include "commands.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "output.hpp"

namespace dtmalloc::sim {
namespace {

std::optional<int> convert_trace(workload::Trace& trace, workload::TraceFormat format,
                                 const workload::TraceSink& sink) {
  const auto converted = workload::convert(trace, format, sink);
  if (converted) return kOk;
  print_error(to_string(converted.error()));
  return std::nullopt;
}

// Nothing: there is no trace.
std::optional<int> record_run(const workload::Workload& workload, const KernelConfig& config,
                              Output& output, workload::TraceFormat format,
                              const workload::TraceSink& sink) {
  Kernel kernel(config);
  kernel.cpus().bind(0);
  kernel.cpus().set_console([&](std::string_view text) {
    output.flush();
    print_error(text);
  });
  const auto stop = [&] { return InterruptGuard::interrupted() || output.failed(); };
  kernel.cpus().set_interrupt_check(stop);
  const workload::RunHooks hooks{.attention = &attention,
                                 .attend = [&] { return !stop(); },
                                 .report = [](const Diagnostic& d) { print_error(to_string(d)); },
                                 .note = {}};
  InterruptGuard::arm();
  const auto outcome = workload::record(workload, kernel, hooks, format, sink);
  if (!outcome || outcome->error) {
    print_error(to_string(outcome ? *outcome->error : outcome.error()));
    return std::nullopt;
  }
  if (outcome->panic) {
    print_panic(*outcome->panic);
    return kPanic;
  }
  if (outcome->stopped) {
    if (InterruptGuard::interrupted()) complain("interrupted: the trace ends there");
    return kRefused;
  }
  return outcome->failed_expects != 0 ? kExpectFailed : kOk;
}

}  // namespace

int record_command(const RecordOptions& options) {
  const auto format = options.binary ? workload::TraceFormat::binary : workload::TraceFormat::text;
  const auto trace = open_trace(options.workload, true);
  if (trace == nullptr) return kRefused;
  std::optional<workload::Workload> workload;
  std::optional<KernelConfig> config;
  if (!trace->is_binary()) {
    auto parsed = trace->whole_workload();
    if (!parsed) {
      tell(parsed.error());
      return kRefused;
    }
    workload = std::move(*parsed);
    config = machine_config(*workload, options.machine);
    if (!config) return kUsage;
    workload->kernel = machine_settings(*workload, options.machine);
  } else if (options.machine != MachineOptions{}) {
    complain(
        "a binary trace is recorded in another form, not run: options of the machine are of "
        "workloads");
    return kUsage;
  }
  const auto output = Output::open(options.output, {options.workload});
  if (output == nullptr) return kRefused;
  const InterruptGuard interrupts;
  const auto sink = [&](std::string_view text) { output->write(text); };
  const std::optional<int> status = workload ? record_run(*workload, *config, *output, format, sink)
                                             : convert_trace(*trace, format, sink);
  return status && output->commit() ? *status : kRefused;
}

}  // namespace dtmalloc::sim
