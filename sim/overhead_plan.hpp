// SPDX-License-Identifier: BSD-2-Clause
// In which ways `dtmalloc overhead` runs a workload, and what is the difference of which two.
// Invariants:   a clause costs the difference of two ways that differ in it alone: it runs with
// those
//               whose variables it reads, as alone its predicate might never hold

#pragma once

#include <dtmalloc/dtrace/session.hpp>
#include <set>
#include <string>
#include <vector>

namespace dtmalloc::sim {

// A clause as it was written, on one description: `if` and `else` make several of one.
struct PlannedClause {
  std::size_t program = 0;
  std::vector<std::size_t> pieces;  // of the program's clauses
  dtrace::ProbeDescription description;
  SourceLocation where;
  std::set<std::string> reads, stores, aggregations;
};

// One way to run the workload.
struct Way {
  enum Kind {
    absent,    // malloc and free have no probe sites
    disabled,  // they have, and nothing is enabled
    empty,     // a callback that does nothing on the probes `probes`
    traced,    // the programs' `clauses`
  };
  Kind kind = disabled;
  std::set<std::size_t> probes, clauses;
  std::string without;  // an aggregation that nothing adds to
  bool operator==(const Way&) const = default;
};

struct OverheadPlan {
  std::vector<PlannedClause> clauses;            // but for those of BEGIN, END and ERROR
  std::vector<dtrace::ProbeDescription> probes;  // that they name, each once
  std::vector<std::string> aggregations;         // that they add to
  std::vector<std::string> left_out;             // actions that do not run: "exit()"

  // The first two are absent and disabled.
  std::vector<Way> ways;
  std::vector<std::size_t> empty;  // of each probe: its way
  std::size_t all_empty = 0;       // of all together; 0: there are not several
  std::size_t traced = 0;          // with all clauses; 0: there is no program
  struct Difference {
    std::size_t with = 0, without = 0;
  };
  std::vector<Difference> of_clause, of_aggregation;
  // Of each clause: those that it was run with.
  std::vector<std::set<std::size_t>> needs;

  std::size_t way(const Way& wanted);  // finds or adds it
};

// The probes that a description matches.
enum class Matched {
  nothing,
  once,  // those of the provider dtrace: BEGIN, END, ERROR
  some,
};
// `programs`: their clauses. No program: both probes of dtmalloc, empty.
OverheadPlan plan_overhead(const std::vector<std::vector<dtrace::ClauseInfo>>& programs,
                           const std::function<Matched(const dtrace::ProbeDescription&)>& matched);

}  // namespace dtmalloc::sim
