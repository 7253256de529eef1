// SPDX-License-Identifier: BSD-2-Clause
// Runs a workload on a kernel.
//
// Example:
//   KernelConfig config;
//   w.kernel.apply(config);
//   Kernel k(config);
//   k.cpus().bind(0);
//   workload::Runner runner(w, k);
//   if (auto booted = runner.boot(); !booted) ...   // types and history; enable D programs now
//   workload::Outcome outcome = runner.run();
//   if (outcome.panic) ... outcome.panic->what()
//
// Units:         virtual nanoseconds.
// Errors:        a user's error is Outcome::error; a panic of the machine is Outcome::panic.
// Thread safety: one thread drives a Runner, bound to a CPU of the kernel.
// Source:        sim/README.md.
#pragma once

#include <atomic>
#include <dtmalloc/workload/workload.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtmalloc::workload {

struct RunHooks {
  // Looked at between operations; when set, attend() is called (and should clear it). A long wait
  // looks up when CpuSet::set_interrupt_check() says so.
  std::atomic<bool>* attention = nullptr;
  // False: end the run here. May be called in a critical section.
  std::function<bool()> attend = {};
  // A failed expect, as it happens.
  std::function<void(const Diagnostic&)> report = {};
  // A remark on what is allowed and hardly meant, at the end of boot; nothing changes by it.
  std::function<void(const Diagnostic&)> note = {};
  // malloc and free are the functions without probe sites (kern_malloc_nohooks): nothing fires
  // there. For who measures what the sites cost.
  bool no_probe_sites = false;
  // The run keeps account of who allocated the blocks that its names hold, where owners_suffice():
  // the ledger then begins when Runner::begin_ledger() is called, or before that when only it can
  // tell what happens. Until then the kernel's fast paths are taken.
  bool keep_owners = false;
};
// Whether the names' owners can stand for the ledger on such a machine, with what reports of live
// blocks show.
bool owners_suffice(const KernelConfig& config);

// Where a thread of the workload stood.
struct ThreadPlace {
  std::string execname;
  int tid = 0;
  std::uint32_t line = 0;  // of the statement
};

struct Outcome {
  std::optional<KernelPanic> panic;
  std::vector<ThreadPlace> panic_places;  // who panicked; of a deadlock all sleepers, by tid
  std::optional<Diagnostic> error;        // the workload is wrong; found while running it
  std::uint64_t operations = 0;
  std::uint64_t failed_expects = 0;
  std::uint64_t leaked_types = 0;  // unloads that left something behind
  bool stopped = false;            // attend() said so
};

class Runner {
 public:
  Runner(const Workload& workload, Kernel& kernel, RunHooks hooks = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Registers the types and enters the history that precede the first operation.
  Result<void> boot();
  // The rest; threads still running at the end are joined.
  Outcome run();
  // The operations once more on the machine as it is, from CPU 0, with no block set; what an expect
  // says does not count. Requires: run() ended well, and repeatable().
  Outcome run_again();
  // No statement after boot registers, makes or destroys a type or a zone.
  bool repeatable() const;

  // The kernel has a ledger from here on, if the owners were kept: what lives, who allocated it,
  // what was freed wrongly.
  void begin_ledger();

  // Operations done so far; safe from any thread.
  std::uint64_t operations() const;
  // The block that a name holds, "a", "x[3]" or "x[3,4]"; null when unset.
  void* block(std::string_view name) const;
  // Whether the run has set it, null or not.
  bool is_set(std::string_view name) const;

  struct State;

 private:
  friend class Replayer;
  friend class Recorder;
  std::shared_ptr<State> state_;
};

}  // namespace dtmalloc::workload
