// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc run`: boot, enable, run, print.

#include <dtmalloc/workload/run.hpp>
#include <optional>
#include <sstream>

#include "commands.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "reports.hpp"
#include "tracing.hpp"

namespace dtmalloc::sim {
namespace {

class Run {
 public:
  Run(const RunOptions& options, const workload::Workload& workload, const KernelConfig& config,
      std::vector<std::string> inputs, Output& output)
      : options_(options),
        inputs_(std::move(inputs)),
        workload_(workload),
        output_(output),
        kernel_(config) {
    kernel_.cpus().set_console([this](std::string_view text) {
      output_.flush();
      print_error(text);
    });
    kernel_.cpus().set_interrupt_check([this] {
      return attention.load(std::memory_order_relaxed) || (tracing_ && tracing_->exited());
    });
    kernel_.cpus().bind(0);
  }

  // Nothing: refused, and `refusal` is the exit status; a program's own statuses never are one.
  std::optional<int> all(const std::vector<dtrace::ProgramSource>& sources, int& refusal) {
    refusal = kRefused;
    if (!options_.libxo.empty() && options_.reports.empty() && !sources.empty()) {
      complain("--" + options_.libxo + " formats reports: expected --report vmstat-m with it");
      refusal = kUsage;
      return std::nullopt;
    }
    workload::Runner runner(workload_, kernel_,
                            {.attention = &attention,
                             .attend = [this, &runner] { return attend(runner.operations()); },
                             .report = [this](const Diagnostic& d) { message(to_string(d)); },
                             .note = [this](const Diagnostic& d) { note(d); }});
    if (auto booted = runner.boot(); !booted) {
      message(to_string(booted.error()));
      return std::nullopt;
    }
    // A sysctl may name a zone that the workload makes at boot.
    std::vector<Report> reports;
    if (!to_standard_output(options_.output)) inputs_.push_back(options_.output);
    if (!read_reports(options_, sources.empty(), {workload_, kernel_, inputs_}, reports, refusal))
      return std::nullopt;
    if (!sources.empty()) {
      tracing_.emplace(kernel_, output_);
      if (!tracing_->start(options_, sources, workload_)) return std::nullopt;
    }
    const workload::Outcome outcome = runner.run();
    end_progress();
    if (outcome.error) message(to_string(*outcome.error));
    if (outcome.panic) {
      output_.flush();
      print_panic(*outcome.panic);
      for (const workload::ThreadPlace& place : outcome.panic_places)
        print_error("  at " + workload_.file + ":" + std::to_string(place.line) + ", " +
                    place.execname + " (tid " + std::to_string(place.tid) + ")\n");
    }
    stop_tracing();
    if (kernel_.ledger() != nullptr) tell_findings(outcome.panic.has_value(), reports);
    for (Report& report : reports) {
      report.block = runner.block(report.value);
      report.block_set = runner.is_set(report.value);
      if (!print_report(report, kernel_, options_.libxo, output_)) return std::nullopt;
    }
    return exit_status(outcome);
  }

 private:
  // Between two operations; false ends the run.
  bool attend(std::uint64_t operations) {
    attention.store(false, std::memory_order_relaxed);
    if (InterruptGuard::interrupted()) {
      if (tracing_ && !tracing_->exited()) output_.write("\n");
      return false;
    }
    if (tracing_ && tracing_->exited() && curcpu->critbase == 0) tracing_->stop();
    if (output_.failed()) return false;
    if (progress_.due()) {
      progress_shown_ = true;
      print_error("\r" + std::to_string(operations) + " operations, " +
                  std::to_string(kernel_.cpus().clock().now() / 1000000) + " ms of virtual time");
    }
    return true;
  }

  void end_progress() {
    if (progress_shown_) print_error("\r\x1b[K");
    progress_shown_ = false;
  }

  void message(const std::string& text) {
    end_progress();
    output_.flush();
    print_error(text);
  }

  // A remark of ours on the workload: one line.
  void note(const Diagnostic& d) {
    std::string text = "dtmalloc: ";
    if (d.where.line != 0)
      text += d.where.file + ":" + std::to_string(d.where.line) + ":" +
              std::to_string(d.where.column) + ": ";
    text += d.message;
    for (std::size_t i = 0; i < d.near_names.size(); ++i)
      text += (i == 0 ? "; did you mean '" : "' or '") + d.near_names[i];
    message(text + (d.near_names.empty() ? "\n" : "'?\n"));
  }

  // What the ledger found, beside what the kernel said: marked as ours.
  void tell_findings(bool panicked, const std::vector<Report>& reports) {
    if (const auto finding = kernel_.ledger()->explanation(); panicked && finding) {
      std::istringstream lines(to_string(*finding));
      for (std::string line; std::getline(lines, line);) message("dtmalloc: " + line + "\n");
      return;
    }
    const std::size_t count = kernel_.ledger()->findings().size();
    if (count == 0) return;
    for (const Report& report : reports)
      if (report.kind->name == "findings") return;
    message("dtmalloc: " + std::to_string(count) + (count == 1 ? " finding" : " findings") +
            ": --report findings shows " + (count == 1 ? "it" : "them") + "\n");
  }

  // After a panic the consumer still shows what it has; the machine itself may refuse END.
  void stop_tracing() {
    if (!tracing_) return;
    try {
      tracing_->stop();
    } catch (const KernelPanic&) {
    }
  }

  int exit_status(const workload::Outcome& outcome) const {
    if (outcome.error) return kRefused;
    if (outcome.panic) return kPanic;
    if (outcome.failed_expects != 0) return kExpectFailed;
    if (tracing_ && (tracing_->exit_status() & 0xff) != 0) return tracing_->exit_status() & 0xff;
    const bool found = kernel_.ledger() != nullptr && !kernel_.ledger()->findings().empty();
    if (options_.strict &&
        (found || outcome.leaked_types != 0 || (tracing_ && tracing_->had_errors()))) {
      return kStrict;
    }
    return kOk;
  }

  const RunOptions& options_;
  std::vector<std::string> inputs_;
  const workload::Workload& workload_;
  Output& output_;
  ProgressTimer progress_;
  bool progress_shown_ = false;
  Kernel kernel_;
  std::optional<Tracing> tracing_;
};

}  // namespace

int run_command(const RunOptions& options) {
  const auto workload = load_workload(options.workload);
  if (!workload) return kRefused;
  std::vector<dtrace::ProgramSource> sources;
  if (!read_programs(options, sources)) return kRefused;
  auto config = machine_config(*workload, options.machine);
  if (!config) return kUsage;
  prepare_ledger(options.reports, *config);
  std::vector<std::string> inputs{options.workload};
  for (const ProgramOption& program : options.programs) {
    if (program.script) inputs.push_back(program.text);
  }
  const auto output = Output::open(options.output, inputs);
  if (output == nullptr) return kRefused;
  const InterruptGuard interrupts;
  int refusal = kRefused;
  const auto status = Run(options, *workload, *config, inputs, *output).all(sources, refusal);
  if (!status && !to_standard_output(options.output)) return refusal;
  if (!output->commit()) return kRefused;
  return status.value_or(refusal);
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
  Kernel kernel(*config);
  kernel.cpus().bind(0);
  workload::Runner runner(*workload, kernel);
  if (auto booted = runner.boot(); !booted) {
    print_error(to_string(booted.error()));
    return kRefused;
  }
  Tracing tracing(kernel, *output);
  tracing.session().list(nullptr);
  return output->commit() ? kOk : kRefused;
}

}  // namespace dtmalloc::sim
