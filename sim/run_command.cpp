// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc run` and `replay`: boot, enable, run, print. `dtmalloc list`.

#include <optional>
#include <sstream>

#include "anonymous.hpp"
#include "commands.hpp"
#include "machine.hpp"
#include "machine_run.hpp"
#include "reports.hpp"

namespace dtmalloc::sim {
namespace {

class Run {
 public:
  Run(const RunOptions& options, const workload::Workload& workload, const KernelConfig& config,
      workload::Trace* trace, bool keep_owners, std::vector<std::string> inputs, Output& output)
      : options_(options),
        inputs_(std::move(inputs)),
        workload_(workload),
        trace_(trace),
        output_(output),
        machine_(workload, config, output, MachineRun::whole, {.keep_owners = keep_owners}) {
    if (trace_ != nullptr) machine_.replay(*trace_);
  }

  // Nothing: refused, and `refusal` is the exit status; a program's own statuses never are one.
  std::optional<int> all(const std::vector<dtrace::ProgramSource>& sources, int& refusal) {
    refusal = kRefused;
    if (!machine_.boot()) return std::nullopt;
    Kernel& kernel = machine_.kernel();
    // A sysctl may name a zone that the workload makes at boot.
    std::vector<Report> reports;
    if (!to_standard_output(options_.output)) inputs_.push_back(options_.output);
    const bool traces = !sources.empty() || options_.tracing.claim;
    const bool whole = trace_ == nullptr;
    if (!read_reports(options_, !traces, {workload_, kernel, inputs_, whole}, reports, refusal))
      return std::nullopt;
    if (traces) {
      Tracing& tracing = machine_.tracing();
      if (options_.tracing.claim) {
        const auto enabling = kept_anonymous(anonymous_file(options_.tracing.anonymous));
        if (!enabling || !tracing.start_anonymous(*enabling)) return std::nullopt;
      }
      TracingOptions asked = options_.tracing;
      if (!options_.libxo.empty() && options_.reports.empty())
        asked.settings.push_back({"--" + options_.libxo, "oformat=" + options_.libxo});
      if (!tracing.set_options(asked)) return std::nullopt;
      for (const dtrace::ProgramSource& source : sources)
        if (!tracing.compile(source)) return std::nullopt;
      if (!tracing.enable(options_.tracing)) return std::nullopt;
      if (!options_.tracing.execute) return kOk;
      if (!tracing.go()) return std::nullopt;
    }
    const workload::Outcome& outcome = machine_.run();
    if (machine_.traced()) tell_notes(machine_.tracing());
    if (kernel.ledger() != nullptr) tell_findings(outcome.panic.has_value(), reports);
    bool all_found = true;
    ReportContext context{workload_, kernel, {}};
    for (Report& report : reports) {
      if (report.pending && !find_pending(report, context)) {
        all_found = false;
        continue;
      }
      const std::optional<void*> block = machine_.block(report.value);
      report.block = block.value_or(nullptr);
      report.block_set = block.has_value();
      if (!print_report(report, kernel, options_.libxo, output_)) return std::nullopt;
    }
    const int status = exit_status(outcome);
    return all_found || status == kPanic ? status : kRefused;
  }

 private:
  void tell_notes(const Tracing& tracing) {
    for (const std::string& note : tracing.notes()) machine_.message("dtmalloc: " + note + "\n");
    if (tracing.quiet()) return;
    for (const std::string& idle : tracing.idle_clauses())
      machine_.message("dtmalloc: " + idle + "\n");
  }

  // What the ledger found, beside what the kernel said: marked as ours.
  void tell_findings(bool panicked, const std::vector<Report>& reports) {
    const Ledger& ledger = *machine_.kernel().ledger();
    if (const auto finding = ledger.explanation(); panicked && finding) {
      std::istringstream lines(to_string(*finding));
      for (std::string line; std::getline(lines, line);)
        machine_.message("dtmalloc: " + line + "\n");
      return;
    }
    const std::size_t count = ledger.findings().size();
    if (count == 0) return;
    for (const Report& report : reports)
      if (report.kind->name == "findings") return;
    machine_.message("dtmalloc: " + std::to_string(count) +
                     (count == 1 ? " finding" : " findings") + ": --report findings shows " +
                     (count == 1 ? "it" : "them") + "\n");
  }

  int exit_status(const workload::Outcome& outcome) {
    if (outcome.error) return kRefused;
    if (outcome.panic) return kPanic;
    if (outcome.failed_expects != 0) return kExpectFailed;
    const bool traced = machine_.traced();
    if (traced && (machine_.tracing().exit_status() & 0xff) != 0)
      return machine_.tracing().exit_status() & 0xff;
    const Ledger* ledger = machine_.kernel().ledger();
    const bool found = ledger != nullptr && !ledger->findings().empty();
    if (options_.strict &&
        (found || outcome.leaked_types != 0 || (traced && machine_.tracing().had_errors()))) {
      return kStrict;
    }
    return kOk;
  }

  const RunOptions& options_;
  std::vector<std::string> inputs_;
  const workload::Workload& workload_;
  workload::Trace* const trace_;
  Output& output_;
  MachineRun machine_;
};

// `workload`: all of it, or the head of `trace`.
int run_machine(const RunOptions& options, const workload::Workload& workload,
                workload::Trace* trace) {
  std::vector<dtrace::ProgramSource> sources;
  for (const ProgramOption& program : options.tracing.programs) {
    auto source = read_program(program, options.tracing.args);
    if (!source) return kRefused;
    sources.push_back(std::move(*source));
  }
  auto config = machine_config(workload, options.machine);
  if (!config) return kUsage;
  const bool keep_owners = prepare_ledger(options, trace == nullptr, *config);
  std::vector<std::string> inputs{options.workload};
  for (const ProgramOption& program : options.tracing.programs) {
    if (program.script) inputs.push_back(program.text);
  }
  const auto output = Output::open(options.output, inputs);
  if (output == nullptr) return kRefused;
  const InterruptGuard interrupts;
  int refusal = kRefused;
  const auto status =
      Run(options, workload, *config, trace, keep_owners, inputs, *output).all(sources, refusal);
  if (!status && !to_standard_output(options.output)) return refusal;
  if (!output->commit()) return kRefused;
  return status.value_or(refusal);
}

}  // namespace

int run_command(const RunOptions& options) {
  const auto workload = load_workload(options.workload);
  return workload ? run_machine(options, *workload, nullptr) : kRefused;
}

int replay_command(const RunOptions& options) {
  const auto trace = open_trace(options.workload);
  return trace != nullptr ? run_machine(options, trace->head(), trace.get()) : kRefused;
}

int list_command(const ListOptions& options) {
  auto workload = workload::parse("", "");
  if (!options.workload.empty()) {
    auto loaded = load_workload(options.workload);
    if (!loaded) return kRefused;
    workload = std::move(*loaded);
  }
  const auto config = machine_config(*workload, options.machine);
  if (!config) return kUsage;
  const InterruptGuard interrupts;
  const auto output = Output::open("", {});
  MachineRun machine(*workload, *config, *output, MachineRun::as_dtrace1);
  if (!machine.boot()) return kRefused;
  Tracing& tracing = machine.tracing();
  TracingOptions listing = options.tracing;
  listing.settings.push_back({"-l", "zdefs"});
  if (!tracing.set_options(listing)) return kRefused;
  for (const ProgramOption& program : listing.programs) {
    const auto source = read_program(program, listing.args);
    if (!source || !tracing.compile(*source)) return kRefused;
  }
  tracing.list(listing.verbose);
  return output->commit() ? kOk : kRefused;
}

}  // namespace dtmalloc::sim
