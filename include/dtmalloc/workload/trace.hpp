// SPDX-License-Identifier: BSD-2-Clause
// Traces: flat workloads of any length, read, replayed, recorded and converted piece by piece.
//
// A flat trace is a workload without blocks in braces. It is text (the workload language) or a
// binary file of the same statements (sim/README.md, "Traces"); which of the two shows in the first
// bytes.
//
// Example:
//   auto trace = Trace::open("load.trace");               // or Trace::from_memory(bytes, "name")
//   if (!trace) std::cerr << to_string(trace.error());
//   KernelConfig config;
//   (*trace)->head().kernel.apply(config);
//   Kernel k(config);
//   k.cpus().bind(0);
//   workload::Runner runner((*trace)->head(), k);
//   if (auto booted = runner.boot(); !booted) ...
//   workload::Outcome outcome = workload::Replayer(**trace, runner).run();
//
// Units:         bytes; virtual nanoseconds.
// Errors:        Result with a Diagnostic, tag WL_*; in a binary trace the message says the byte.
//                What is wrong further down shows when it is reached: in Outcome::error.
// Thread safety: one thread drives a Trace and what reads it.
// Source:        sim/README.md.
#pragma once

#include <cstdint>
#include <dtmalloc/workload/run.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dtmalloc::workload {

// One operation: a record of a binary trace, little-endian there.
struct TraceOp {
  enum Kind : std::uint16_t {
    malloc = 0,  // sets a block
    free = 1,    // under `type`, or with kNoType under the block's own
    move = 2,    // goes to the CPU `cpu`
    wait = 3,    // `word` ns
    site = 4,    // no operation: those that follow have the call site `block`; 0: none
  };
  static constexpr int kKindBits = 4, kSizeBits = 44;
  static constexpr std::uint64_t kSizeMask = (std::uint64_t{1} << kSizeBits) - 1;
  static constexpr std::uint32_t kNoType = (1u << (64 - kSizeBits)) - 1;

  std::uint32_t block = 0;
  std::uint16_t kind_flags = 0;  // Kind; above it the flags by their place in trace_flags()
  std::uint16_t cpu = kSameCpu;  // of the operation, which the thread reaches in no time
  std::uint64_t word = 0;        // size; above it the type

  std::uint16_t kind() const { return kind_flags & ((1u << kKindBits) - 1); }
  std::uint16_t flags() const { return static_cast<std::uint16_t>(kind_flags >> kKindBits); }
  std::uint64_t size() const { return word & kSizeMask; }
  std::uint32_t type() const { return static_cast<std::uint32_t>(word >> kSizeBits); }
};
static_assert(sizeof(TraceOp) == 16);

// What check() counted.
struct TraceCount {
  std::uint64_t operations = 0, bytes = 0, blocks = 0;
};

class Trace {
 public:
  // A file, "-": standard input. Reads the head.
  static Result<std::unique_ptr<Trace>> open(const std::string& path);
  // The bytes outlive the trace.
  static Result<std::unique_ptr<Trace>> from_memory(std::string_view bytes, std::string name);
  // The same for what may be a workload with blocks: of a text nothing is read, and only
  // whole_workload() may follow.
  static Result<std::unique_ptr<Trace>> open_any(const std::string& path);
  Result<Workload> whole_workload();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  bool is_binary() const;
  // The kernel line, and the types, zones and history before the first operation. What a Runner
  // of the trace boots. Types, zones and call sites further down join it as they are read.
  const Workload& head() const;
  // Reads the rest and runs nothing.
  Result<TraceCount> check();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Trace(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs what a trace holds after its head, as Runner::run() would. Memory is bounded by the names of
// blocks, not by the length. Statements are looked at when they are reached: names that no
// statement sets, and operands that the machine lacks, end the run there.
class Replayer {
 public:
  // `runner` was made of trace.head() and has booted. Its thread owns all CPUs of the machine while
  // run() runs.
  Replayer(Trace& trace, Runner& runner);
  ~Replayer();
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  Outcome run();  // once
  // As of Runner.
  void* block(std::string_view name) const;
  bool is_set(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

enum class TraceFormat { text, binary };
using TraceSink = std::function<void(std::string_view)>;

// Runs a workload and writes what it does, in the order in which it happens, to `sink`; at the same
// virtual times when it is replayed. `hooks` as of Runner. Outcome::error (tag WL_RECORD): a
// statement that no flat trace carries: critical, interrupt, nosleep; an operation in which another
// thread went on while it slept; threads on several NUMA domains; what expect draws.
Result<Outcome> record(const Workload& workload, Kernel& kernel, RunHooks hooks, TraceFormat format,
                       const TraceSink& sink);

// Writes a trace in a format; runs nothing.
Result<TraceCount> convert(Trace& trace, TraceFormat format, const TraceSink& sink);

}  // namespace dtmalloc::workload
