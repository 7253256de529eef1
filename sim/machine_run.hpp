// SPDX-License-Identifier: BSD-2-Clause
// A machine that runs a workload, with the programs that trace it: boot, enable, run, stop.

#pragma once

#include <dtmalloc/workload/run.hpp>
#include <optional>
#include <string>

#include "interrupt.hpp"
#include "output.hpp"
#include "tracing.hpp"

namespace dtmalloc::sim {

class MachineRun {
 public:
  enum Manner {
    whole,       // to the end of the workload, whatever exit() says; with a progress line
    as_dtrace1,  // exit() ends it
  };
  MachineRun(const workload::Workload& workload, const KernelConfig& config, Output& output,
             Manner manner);

  bool boot();         // false: a message was printed
  Tracing& tracing();  // opens the framework at the first call, after boot
  bool traced() const { return tracing_.has_value(); }
  // Runs to its end and stops tracing; prints what went wrong.
  const workload::Outcome& run();
  const workload::Outcome& outcome() const { return outcome_; }

  Kernel& kernel() { return kernel_; }
  const workload::Runner& runner() const { return runner_; }
  void message(const std::string& text);  // on standard error, after all output so far

 private:
  bool attend();  // between two operations; false ends the run
  void end_progress();
  void tell_panic();
  void note(const Diagnostic& d);
  void stop_tracing();

  const workload::Workload& workload_;
  Output& output_;
  const Manner manner_;
  std::optional<ProgressTimer> progress_;
  bool progress_shown_ = false, interrupt_shown_ = false;
  Kernel kernel_;
  workload::Runner runner_;
  std::optional<Tracing> tracing_;
  workload::Outcome outcome_;
};

}  // namespace dtmalloc::sim
