// SPDX-License-Identifier: BSD-2-Clause
// A machine that runs a workload, with the programs that trace it: boot, enable, run, stop.

#pragma once

#include <dtmalloc/workload/run.hpp>
#include <dtmalloc/workload/trace.hpp>
#include <functional>
#include <optional>
#include <string>

#include "interrupt.hpp"
#include "output.hpp"
#include "tracing.hpp"

namespace dtmalloc::sim {

// How a workload is run, and what is measured. What counts begins after a warm-up.
struct RunBounds {
  bool silent = false;                               // only what ends the run is said
  bool no_probe_sites = false, keep_owners = false;  // RunHooks
  // Of the operations' first pass, in virtual ns: what counts begins, the run ends. None: at its
  // end if there are others, else at its start; at the end of all.
  std::optional<std::uint64_t> start_at = {}, end_at = {};
  double cpu_seconds = 0;  // of the host: the run ends after that; 0: when it is done
  // How often the operations are done, if they can be done again. 0: twice, and on until so many
  // are done, or half of the machine's memory is taken.
  std::size_t passes = 1;
  std::uint64_t operations = 0;
  std::function<void()> warm = {};  // called when what counts begins
};

class MachineRun {
 public:
  enum Manner {
    whole,       // to the end of the workload, whatever exit() says; with a progress line
    as_dtrace1,  // exit() ends it
    measured,    // the same as `whole`; what programs print goes nowhere, their commands do not run
  };
  MachineRun(const workload::Workload& workload, const KernelConfig& config, Output& output,
             Manner manner, RunBounds bounds = {});

  // run() runs the rest of this trace; the workload is its head.
  void replay(workload::Trace& trace) { replayer_.emplace(trace, runner_); }
  bool boot();         // false: a message was printed
  Tracing& tracing();  // opens the framework at the first call, after boot
  bool traced() const { return tracing_.has_value(); }
  // Runs to its end and stops tracing; prints what went wrong.
  const workload::Outcome& run();
  const workload::Outcome& outcome() const { return outcome_; }
  // Tracing ended before the workload did.
  bool tracing_ended() const { return tracing_ended_; }
  // What counts of a run.
  struct Counted {
    std::size_t passes = 1;  // with the warm-up
    std::uint64_t operations = 0, virtual_ns = 0;
    double cpu_ns = 0;  // of all threads of this process
  };
  const Counted& counted() const { return counted_; }

  Kernel& kernel() { return kernel_; }
  // The block that a name of the workload holds; nothing: it was never set.
  std::optional<void*> block(const std::string& name) const;
  void message(const std::string& text);  // on standard error, after all output so far

 private:
  void run_passes();
  void begin_counting();
  bool attend();  // between two operations; false ends the run
  void end_progress();
  void tell_panic();
  void note(const Diagnostic& d);
  void stop_tracing();
  bool is_over() const;  // as its bounds say

  const workload::Workload& workload_;
  Output& output_;
  const Manner manner_;
  const RunBounds bounds_;
  double deadline_ = 0;  // ns of CPU time; 0: none
  bool end_reached_ = false, tracing_ended_ = false;
  Counted counted_, before_;  // of what counts; when that began
  std::optional<ProgressTimer> progress_;
  bool progress_shown_ = false, interrupt_shown_ = false;
  Kernel kernel_;
  workload::Runner runner_;
  std::optional<workload::Replayer> replayer_;
  std::optional<Tracing> tracing_;
  workload::Outcome outcome_;
};

}  // namespace dtmalloc::sim
