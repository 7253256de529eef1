// SPDX-License-Identifier: BSD-2-Clause
// The ledger: who owns which block, who owned it before, how much each type ever held at once, and
// what was freed wrongly. A kernel keeps nothing of this; it changes no statistic of the kernel.
//
// Example:
//   KernelConfig config;
//   config.ledger.emplace();                                   // on, with the default bounds
//   Kernel k(config);
//   void* p = k.malloc(100, &foo, M_WAITOK);
//   k.free(p, &bar);                                           // the kernel does not notice
//   for (const Finding& finding : k.ledger()->findings()) std::cerr << to_string(finding);
//   k.ledger()->type(foo).peak_bytes;                          // 128, exact
//
// What the bounds of LedgerConfig shut out is counted (dropped()) and never guessed. A call inside
// a machine with a ledger takes the cold path and one lock.
//
// Units:         bytes; nanoseconds since boot; addresses as D programs print them.
// Errors:        none; a finding stops nothing and replaces no panic.
// Thread safety: any thread. Callbacks run on the thread that called malloc(9), without a lock.
// Source:        src/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct malloc_type;

namespace dtmalloc {

class Kernel;

struct LedgerConfig {
  std::size_t blocks = std::size_t{1} << 20;     // live blocks with a record; others only count
  std::size_t addresses = std::size_t{1} << 18;  // addresses whose past owners are kept
  std::size_t past = 4;                          // owners kept for each of them
  std::size_t stacks = 10240;                    // call stacks told apart, and names of threads;
                                                 // others are one, "other"
  std::size_t findings = 1000;                   // findings that differ in kind, types or sites
  std::uint64_t series = 0;                      // ns between two samples; 0: none
  std::size_t samples = 4096;                    // beyond them the interval doubles
  bool operator==(const LedgerConfig&) const = default;
};

// Somebody did something.
struct LedgerPlace {
  std::uint64_t sequence = 0;  // number of the event, from 1; 0: there was none
  std::uint64_t time = 0;
  int cpu = 0;
  int tid = 0;
  std::string execname;
  std::vector<std::string> stack;  // call sites, innermost first; {"other"}: the table was full
};

struct LedgerBlock {
  std::uint64_t address = 0;
  const void* host = nullptr;
  std::string type;              // short description
  std::string symbol;            // C name, if there is one
  bool guarded = false;          // by memguard(9): the kernel counts it nowhere
  std::uint64_t request = 0;     // what was asked for, last by a realloc in place
  std::uint64_t bytes = 0;       // what the kernel counted
  std::uint64_t size_class = 0;  // of the zone that it is from; 0: whole pages
  std::uint32_t resizes = 0;     // reallocs in place
  LedgerPlace allocated;
};

struct PastOwner {
  LedgerBlock block;
  std::string freed_as;  // type
  LedgerPlace freed;
};

struct LedgerType {
  std::string name, symbol;
  bool unloaded = false;  // what it held is still there
  // As the kernel's own sums: below 0 when more was freed under the type than allocated.
  std::int64_t blocks = 0, bytes = 0;
  // Since the registration; each with the time when it was first reached.
  std::int64_t peak_blocks = 0, peak_bytes = 0;
  std::uint64_t peak_blocks_time = 0, peak_bytes_time = 0;
  // Live blocks with a record that the kernel counts.
  std::uint64_t recorded = 0, recorded_bytes = 0, requested = 0;
  std::uint64_t guarded = 0, guarded_bytes = 0;  // by memguard(9); not in the sums above
  // All requests that were granted.
  std::uint64_t all_blocks = 0, all_bytes = 0, all_requested = 0;
  // malloc_type_allocated() less malloc_type_freed(), and what a workload gave as history.
  std::int64_t manual_blocks = 0, manual_bytes = 0;
};

// Granted requests of one class; `size` 0: whole pages.
struct LedgerClass {
  std::uint64_t size = 0;
  std::uint64_t live_blocks = 0, live_bytes = 0, live_requested = 0;
  std::uint64_t all_blocks = 0, all_bytes = 0, all_requested = 0;
};

// Blocks of one type that were freed under another.
struct LedgerMismatch {
  std::string allocated_as, freed_as;
  std::uint64_t blocks = 0, bytes = 0;
  LedgerPlace first_allocated, first_freed;
};

struct Finding {
  enum class Kind : std::uint8_t {
    wrong_type,        // freed under another type than allocated
    double_free,       // freed again
    interior_free,     // the address lies inside a block
    foreign_free,      // nothing of malloc(9) was ever there
    stale_type,        // the type was unloaded before
    handed_out_twice,  // the address belongs to a live block: a double free came back
    modified,          // after its free: INVARIANTS saw it
    leak,              // blocks that live when their type is unloaded
  };
  Kind kind = Kind::wrong_type;
  // Times it happened at these sites; the rest is of the first time. A leak: blocks.
  std::uint64_t count = 1;
  std::uint64_t address = 0;
  std::uint64_t base = 0;  // of the block, if there is one
  std::uint64_t request = 0, bytes = 0;
  std::string type;                                   // of the allocation
  std::string other_type;                             // of the free, if it is another one
  std::string what;                                   // foreign: what is there
  std::optional<LedgerPlace> allocated, freed, used;  // used: where it was found
};
// "wrong-type" "double-free" ...
std::string_view name_of(Finding::Kind kind);
// One line.
std::string summary(const Finding& finding);
// The summary, then a line for each place.
std::string to_string(const Finding& finding);
// "foo_alloc+0x12 < foo_attach+0x1c (cpu 0, kernel/100000, 1200 ns)"
std::string to_string(const LedgerPlace& place);
// "foo_alloc+0x12 < foo_attach+0x1c"; "(no call site)".
std::string stack_text(const std::vector<std::string>& stack);

struct LedgerDropped {
  std::uint64_t blocks = 0;  // allocations without a record
  std::uint64_t stacks = 0;  // events whose stack is "other"
  std::uint64_t names = 0;   // events whose thread is "other"
  std::uint64_t past = 0;    // owners that were forgotten
  std::uint64_t findings = 0;
};

// Live bytes of each type at equal distances; a type that came later has a shorter column of time.
struct LedgerSeries {
  std::uint64_t interval = 0;  // ns; longer than asked for when there were too many samples
  std::vector<std::string> types;
  struct Sample {
    std::uint64_t time;
    std::vector<std::int64_t> bytes;  // by type
  };
  std::vector<Sample> samples;
};

class Ledger {
 public:
  Ledger(Kernel& kernel, const LedgerConfig& config);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  const LedgerConfig& config() const;
  std::vector<LedgerBlock> live() const;  // by address
  // In order of registration, then those that were unloaded.
  std::vector<LedgerType> types() const;
  LedgerType type(const malloc_type& mtp) const;
  LedgerType total() const;  // of all types
  std::vector<LedgerClass> classes() const;
  std::vector<LedgerMismatch> mismatches() const;
  // The block that covers an address, and the past of the address where it begins, oldest first.
  std::optional<LedgerBlock> block(std::uint64_t address) const;
  std::vector<PastOwner> past(std::uint64_t address) const;
  std::vector<Finding> findings() const;  // in order of the first time
  // What led to the machine's panic.
  std::optional<Finding> explanation() const;
  LedgerDropped dropped() const;
  LedgerSeries series() const;  // up to now
  // Called at each finding; null: nobody.
  void on_finding(std::function<void(const Finding&)> callback);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtmalloc
