// SPDX-License-Identifier: BSD-2-Clause
// What `dtmalloc overhead` found, and its two forms: a table and a JSON object.

#pragma once

#include <dtmalloc/dtrace/session.hpp>
#include <optional>
#include <string>
#include <vector>

#include "overhead_figures.hpp"

namespace dtmalloc::sim {

struct Overhead {
  std::string workload;
  bool traced = false;           // there is a D program
  std::size_t passes = 1;        // of the operations in a run; of several the first does not count
  std::uint64_t operations = 0;  // that count
  std::uint64_t virtual_ns = 0;  // that they take
  std::uint64_t whole_virtual_ns = 0;  // that all passes take
  bool cut = false;                    // a run is the beginning of the workload
  bool warm = false;                   // of the only pass the first quarter does not count
  std::vector<std::string> notes;

  // Per operation: a difference to another way, what it makes a way's time, in ns.
  struct Cost {
    Estimate over;
    double ns = 0;
  };
  double absent = 0;  // ns of an operation without probe sites
  Cost disabled;      // over absent
  struct Probe {
    std::string description;
    std::size_t probes = 0;
    std::uint64_t firings = 0;  // of a run
    Cost empty;                 // over disabled
  };
  std::vector<Probe> probes;
  std::uint64_t firings = 0;      // of all probes, each once
  std::optional<Cost> all_empty;  // over disabled; none: there are not several probes
  Cost clauses;                   // ditto; if `traced`
  struct Clause {
    std::string place;        // "s.d:3", "-n:1"
    std::string description;  // of its probes
    std::uint64_t firings = 0;
    Estimate cost;
    double share = 0;                // percent of what the clauses cost one by one
    std::uint32_t record = 0;        // bytes; 0: it records nothing
    std::uint64_t records = 0;       // that were read in a run
    std::vector<std::size_t> needs;  // clauses that it was measured with: indexes
  };
  std::vector<Clause> clause;
  struct Aggregation {
    std::string name;
    Estimate cost;
    double share = 0;  // percent of what the clauses cost together
    std::uint64_t elements = 0, bytes = 0;
  };
  std::vector<Aggregation> aggregations;
  dtrace::TraceFigures figures;

  // --- the confidence
  std::uint64_t seed = 0;
  double seconds = 0;
  std::size_t rounds = 0, quiet = 0;
  double spread = 0;  // percent, of the rounds' times

  bool noisy() const { return is_noisy(rounds, quiet, spread); }
  double per_operation(std::uint64_t firings_of) const {
    return operations == 0 ? 0 : static_cast<double>(firings_of) / static_cast<double>(operations);
  }
  double operations_per_second() const {  // of virtual time
    return per_second(static_cast<double>(operations), static_cast<double>(virtual_ns));
  }
  // What tracing costs: with the clauses, or with all probes enabled empty.
  const Cost& tracing() const {
    return traced ? clauses : all_empty ? *all_empty : probes.front().empty;
  }
  // Of the records of clauses, not those of BEGIN and END.
  std::uint64_t records() const;
  double record_bytes() const;  // of one, on the average
  std::uint64_t drops(const char* tag) const;
};

std::string overhead_text(const Overhead& overhead);
std::string overhead_json(const Overhead& overhead);

}  // namespace dtmalloc::sim
