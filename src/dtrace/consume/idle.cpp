// SPDX-License-Identifier: BSD-2-Clause
// Clauses that did nothing in a whole run, found without a counter: by the records that were
// printed and by the elements of their aggregations.
// Differs:      dtrace(1) has none of this; `dtmalloc run` prints it.
// Invariants:   what cannot be told for sure is not said: a clause that neither records nor
//               aggregates, one that shares all its aggregations, one whose records may be lost.
#include <algorithm>
#include <set>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

using Count = std::map<std::uint32_t, int>;

// By aggregation: how many clauses add to it, and whether elements may have gone.
struct AggregationUse {
  Count users;
  std::set<std::uint32_t> shrunk;
};

AggregationUse aggregation_use(const std::vector<CompiledProgram>& programs) {
  AggregationUse use;
  for (const CompiledProgram& compiled : programs) {
    for (const Clause& clause : compiled.program->clauses) {
      std::set<std::uint32_t> own;
      for (const Action& action : clause.actions) {
        if (action.kind == ActionKind::aggregate) own.insert(action.aggregation);
        if (action.kind == ActionKind::trunc) use.shrunk.insert(action.aggregation);
      }
      for (const std::uint32_t id : own) ++use.users[id];
    }
  }
  return use;
}

bool has(const Clause& clause, ActionKind kind) {
  return std::any_of(clause.actions.begin(), clause.actions.end(),
                     [kind](const Action& action) { return action.kind == kind; });
}

}  // namespace

void Session::Impl::find_idle_clauses() {
  if (lost_records) return;
  const AggregationUse use = aggregation_use(programs);
  std::map<const Clause*, bool> recorded;  // by clause: it records; whether a record came
  for (std::uint32_t epid = 1; const Ecb* ecb = consumer.ecb(epid); ++epid) {
    if (ecb->role != EcbRole::normal || ecb->clause == nullptr) continue;
    bool& came = recorded[ecb->clause];
    came = came || ecb->recorded_once || ecb->size == 0;
  }
  for (const CompiledProgram& compiled : programs) {
    for (const Clause& clause : compiled.program->clauses) {
      const auto found = recorded.find(&clause);
      if (found == recorded.end() || has(clause, ActionKind::speculate) ||
          has(clause, ActionKind::commit))
        continue;
      bool idle = !found->second;
      if (!idle) {
        const auto grew = [&](const Action& action) {
          AggTable* table = aggregations.table(action.aggregation);
          return table != nullptr && !table->elements.empty();
        };
        const auto alone = [&](const Action& action) {
          return action.kind == ActionKind::aggregate && !use.shrunk.contains(action.aggregation) &&
                 use.users.at(action.aggregation) == 1;
        };
        const bool silent =
            std::all_of(clause.actions.begin(), clause.actions.end(), [](const Action& action) {
              return action.kind == ActionKind::aggregate || action.kind == ActionKind::eval;
            });
        idle = silent && std::any_of(clause.actions.begin(), clause.actions.end(), alone) &&
               std::none_of(clause.actions.begin(), clause.actions.end(),
                            [&](const Action& action) { return alone(action) && grew(action); });
      }
      if (!idle) continue;
      std::string text = "clause never ran: " + to_string(clause.description);
      if (compiled.source.kind == ProgramSource::script)
        text += " (" + compiled.source.name + ":" + std::to_string(clause.where.line) + ")";
      if (clause.predicate) text += "; no firing made its predicate true";
      if (std::find(idle_clauses.begin(), idle_clauses.end(), text) == idle_clauses.end())
        idle_clauses.push_back(std::move(text));
    }
  }
}

std::vector<std::string> Session::idle_clauses() const { return impl_->idle_clauses; }

}  // namespace dtmalloc::dtrace
