// SPDX-License-Identifier: BSD-2-Clause
// Runs a workload under programs that trace it.

#include "machine_run.hpp"

#include <time.h>

#include "machine.hpp"

namespace dtmalloc::sim {
namespace {

double process_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

MachineRun::MachineRun(const workload::Workload& workload, const KernelConfig& config,
                       Output& output, Manner manner, RunBounds bounds)
    : workload_(workload),
      output_(output),
      manner_(manner),
      bounds_(bounds),
      kernel_(config),
      runner_((kernel_.cpus().bind(0), workload), kernel_,
              {.attention = &attention,
               .attend = [this] { return attend(); },
               .report =
                   [this](const Diagnostic& d) {
                     if (!bounds_.silent) message(to_string(d));
                   },
               .note =
                   [this](const Diagnostic& d) {
                     if (!bounds_.silent) note(d);
                   },
               .no_probe_sites = bounds.no_probe_sites,
               .keep_owners = bounds.keep_owners}) {
  if (manner == whole) progress_.emplace();
  CpuSet& cpus = kernel_.cpus();
  cpus.set_console([this](std::string_view text) {
    if (bounds_.silent) return;
    output_.flush();
    print_error(text);
  });
  cpus.set_interrupt_check([this] {
    if (kernel_.config().real_clock) output_.flush();  // a pass may have ended
    return attention.load(std::memory_order_relaxed) || output_.failed() ||
           (tracing_ && tracing_->exited()) || is_over();
  });
  if (bounds_.start_at) cpus.clock().schedule(*bounds_.start_at, 0, [this] { begin_counting(); });
  if (bounds_.end_at) {
    cpus.clock().schedule(*bounds_.end_at, 0, [this] {
      end_reached_ = true;
      attention.store(true, std::memory_order_relaxed);
    });
  }
}

bool MachineRun::boot() {
  auto booted = runner_.boot();
  if (!booted) message(to_string(booted.error()));
  return static_cast<bool>(booted);
}

Tracing& MachineRun::tracing() {
  if (!tracing_) {
    tracing_.emplace(kernel_, output_, manner_ == measured);
    tracing_->tell_later_types(workload_);
  }
  return *tracing_;
}

const workload::Outcome& MachineRun::run() {
  InterruptGuard::arm();
  if (bounds_.cpu_seconds > 0) deadline_ = process_cpu_ns() + bounds_.cpu_seconds * 1e9;
  // exit() in BEGIN: nothing of the machine runs.
  if (manner_ != as_dtrace1 || !tracing_ || !tracing_->exited()) {
    run_passes();
    tracing_ended_ = tracing_ && tracing_->session().done();
  }
  runner_.begin_ledger();
  end_progress();
  if (outcome_.error) message(to_string(*outcome_.error));
  if (outcome_.panic) tell_panic();
  stop_tracing();
  return outcome_;
}

void MachineRun::begin_counting() {
  before_.operations = runner_.operations();
  before_.virtual_ns = kernel_.cpus().clock().now();
  if (bounds_.warm) bounds_.warm();
  before_.cpu_ns = process_cpu_ns();
}

void MachineRun::run_passes() {
  std::optional<std::uint64_t> ended;  // the clock, where a pass does not count
  begin_counting();
  outcome_ = replayer_ ? replayer_->run() : runner_.run();
  const auto wants_more = [this] {
    if (outcome_.panic || outcome_.error || outcome_.stopped) return false;
    if (bounds_.passes != 0) return counted_.passes < bounds_.passes;
    return (counted_.passes < 2 || outcome_.operations < bounds_.operations) &&
           kernel_.free_pages() > kernel_.total_pages() / 2;
  };
  if (bounds_.passes != 1 && runner_.repeatable() && outcome_.operations != 0) {
    while (wants_more()) {
      const Counted before = before_;
      const std::uint64_t start = kernel_.cpus().clock().now();
      if (counted_.passes == 1) begin_counting();
      workload::Outcome next = runner_.run_again();
      // What passes leave behind adds up: those before this one went well.
      if (bounds_.passes == 0 && (next.panic || next.error)) {
        before_ = before;
        ended = start;
        break;
      }
      ++counted_.passes;
      outcome_ = std::move(next);
    }
  }
  counted_.cpu_ns = process_cpu_ns() - before_.cpu_ns;
  counted_.operations = outcome_.operations - before_.operations;
  counted_.virtual_ns = ended.value_or(kernel_.cpus().clock().now()) - before_.virtual_ns;
}

std::optional<void*> MachineRun::block(const std::string& name) const {
  if (replayer_)
    return replayer_->is_set(name) ? std::optional(replayer_->block(name)) : std::nullopt;
  return runner_.is_set(name) ? std::optional(runner_.block(name)) : std::nullopt;
}

void MachineRun::tell_panic() {
  output_.flush();
  print_panic(*outcome_.panic);
  for (const workload::ThreadPlace& place : outcome_.panic_places)
    print_error("  at " + workload_.file + ":" + std::to_string(place.line) + ", " +
                place.execname + " (tid " + std::to_string(place.tid) + ")\n");
}

bool MachineRun::attend() {
  attention.store(false, std::memory_order_relaxed);
  if (InterruptGuard::interrupted()) {
    // Off the line of the "^C"; every thread of the workload comes here.
    if (tracing_ && tracing_->prints_text() && !interrupt_shown_) output_.write("\n");
    interrupt_shown_ = true;
    return false;
  }
  if (tracing_ && tracing_->exited()) {
    if (manner_ == as_dtrace1) return false;
    if (curcpu->critbase == 0) tracing_->stop();
  }
  if (output_.failed() || is_over()) return false;
  if (progress_ && progress_->due()) {
    progress_shown_ = true;
    print_error("\r" + std::to_string(runner_.operations()) + " operations, " +
                std::to_string(kernel_.cpus().clock().now() / 1000000) + " ms of virtual time");
  }
  return true;
}

bool MachineRun::is_over() const {
  return end_reached_ || (deadline_ > 0 && process_cpu_ns() > deadline_);
}

void MachineRun::end_progress() {
  if (progress_shown_) print_error("\r\x1b[K");
  progress_shown_ = false;
}

void MachineRun::message(const std::string& text) {
  end_progress();
  output_.flush();
  print_error(text);
}

// A remark of ours on the workload: one line.
void MachineRun::note(const Diagnostic& d) {
  std::string text = "dtmalloc: ";
  if (d.where.line != 0)
    text += d.where.file + ":" + std::to_string(d.where.line) + ":" +
            std::to_string(d.where.column) + ": ";
  text += d.message;
  for (std::size_t i = 0; i < d.near_names.size(); ++i)
    text += (i == 0 ? "; did you mean '" : "' or '") + d.near_names[i];
  message(text + (d.near_names.empty() ? "\n" : "'?\n"));
}

// After a panic the consumer still shows what it has; a machine that panicked may refuse END.
void MachineRun::stop_tracing() {
  if (!tracing_) return;
  try {
    tracing_->stop();
  } catch (const KernelPanic& panic) {  // by an action of END
    if (outcome_.panic) return;
    outcome_.panic = panic;
    tell_panic();
  }
}

}  // namespace dtmalloc::sim
