// SPDX-License-Identifier: BSD-2-Clause
// Workloads from a seed, for property tests, fuzzers and the command.
//
// Example:
//   GenerateOptions options;
//   options.seed = 7;
//   options.operations = 500;
//   options.threads = 3;
//   Workload w = workload::generate(options);        // the same on every platform
//   std::cout << workload::generate_text(options);   // its text
//
// Every block gets a name of its own and is freed at most once, by its owner or by another thread;
// a thread uses another's block only after it exists, so that no schedule can stall.
//
// Units:         bytes; shares in percent.
// Errors:        check() says what is wrong with options; generate() requires that nothing is.
// Thread safety: values.
// Source:        sim/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dtmalloc/sys/diagnostic.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtmalloc::workload {

struct Workload;

// Requests of low .. high bytes (both included), evenly; `weight` against the other ranges.
struct SizeRange {
  std::uint64_t low = 1, high = 1;
  std::uint32_t weight = 1;
};
// Mostly small, some pages, a few beyond the largest class, and the edges of the classes.
std::vector<SizeRange> default_sizes();

struct GenerateOptions {
  std::uint64_t seed = 1;
  std::size_t operations = 1000;  // calls of malloc(9), the closing frees not counted
  int types = 4;                  // types of its own, beside M_TEMP
  int cpus = 4;
  int domains = 1;  // several: operations that choose among them occur too
  int threads = 0;  // 0: all on the main thread, which moves between the CPUs
  std::vector<SizeRange> sizes = default_sizes();
  int free_share = 42;     // of the operations: free or zfree of a live block
  std::size_t wave = 0;    // after so many operations allocations and frees change places; 0: never
  int realloc_share = 10;  // realloc or reallocf
  int other_share = 8;     // mallocarray, malloc_aligned, malloc_exec, contigmalloc; their kin
  int nowait_share = 30;   // of the allocations: M_NOWAIT
  int zero_share = 20;     // of the allocations: M_ZERO
  int other_cpu_share = 10;    // of the operations: before it, a move to another CPU
  int foreign_free_share = 0;  // of the frees with threads: of a block that another thread made
  int wrong_type_share = 0;    // of the frees: under another type, as a buggy kernel does
  int zones = 0;               // zones of its own: uma_zalloc, uma_zfree and reclaim occur too
  int zone_share = 30;         // with zones: of the operations, those
  bool free_all = false;       // ends with a free of every block
  bool invariants = false;
  std::uint64_t mem = 0;  // physical memory; 0: the default
};

// What is wrong with the options (tag WL_GENERATE), or nothing.
std::optional<Diagnostic> check(const GenerateOptions& options);
Workload generate(const GenerateOptions& options);
std::string generate_text(const GenerateOptions& options);

}  // namespace dtmalloc::workload
