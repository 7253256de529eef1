// SPDX-License-Identifier: BSD-2-Clause
// Clauses that did nothing in a whole run, found without a counter: by the records that were
// printed and by the elements of their aggregations.
// Differs:      dtrace(1) has none of this; `dtmalloc run` prints it.
// Invariants:   what cannot be told for sure is not said: a clause that neither records nor
//               aggregates, one that failed, one whose records may be lost, one that shares all
//               its aggregations, unless they are empty or a text in their keys is its own, the
//               pieces of one with branches.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "dtrace/consume/session_impl.hpp"
#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// Who adds to an aggregation, and whether elements of it may have gone.
struct AggregationUse {
  std::vector<std::pair<const Clause*, const Action*>> users;
  bool shrunk = false;
};

std::map<std::uint32_t, AggregationUse> aggregation_use(
    const std::vector<CompiledProgram>& programs) {
  std::map<std::uint32_t, AggregationUse> uses;
  for (const CompiledProgram& compiled : programs) {
    for (const Clause& clause : compiled.program->clauses) {
      for (const Action& action : clause.actions) {
        if (action.kind == ActionKind::aggregate)
          uses[action.aggregation].users.emplace_back(&clause, &action);
        if (action.kind == ActionKind::trunc) uses[action.aggregation].shrunk = true;
      }
    }
  }
  return uses;
}

// The text that a key is, when it is a literal: sets, ret.
std::optional<std::string_view> literal(const Value& key) {
  const DifObject& object = key.dif.object();
  if (!key.desc.is_string || object.text.size() != 2) return std::nullopt;
  const DifWord word{object.text.front()};
  if (word.op() != static_cast<unsigned>(DifOp::sets)) return std::nullopt;
  return object.strings.c_str() + word.index();
}

enum class Added { no, yes, unknown };

// Whether a clause's action added to its aggregation.
Added added(const Clause& clause, const Action& action, const AggregationUse& use,
            const AggTable& table, std::uint32_t strsize) {
  if (use.shrunk) return Added::unknown;
  if (table.elements.empty()) return Added::no;
  // The position of a literal that no other clause has in its keys.
  const auto is_own = [&](std::size_t i, std::string_view text) {
    return std::all_of(use.users.begin(), use.users.end(), [&](const auto& user) {
      const auto other = literal(user.second->values[i]);
      return user.first == &clause || (other && *other != text);
    });
  };
  const auto alone = [&](const auto& user) { return user.first == &clause; };
  if (std::all_of(use.users.begin(), use.users.end(), alone)) return Added::yes;
  for (std::size_t i = 0; i < action.values.size(); ++i) {
    const auto text = literal(action.values[i]);
    if (!text || text->size() >= strsize || !is_own(i, *text)) continue;
    for (const auto& [key, element] : table.elements)
      if (split_key(table.desc, key, strsize)[i].bytes == *text) return Added::yes;
    return Added::no;
  }
  return Added::unknown;
}

std::ptrdiff_t count(const Clause& clause, ActionKind kind) {
  return std::count_if(clause.actions.begin(), clause.actions.end(),
                       [kind](const Action& action) { return action.kind == kind; });
}

// Of one whose branches made several: they stand at one place, with one description.
bool is_piece(const Clause& clause, const Program& program) {
  const std::string description = to_string(clause.description);
  return std::count_if(program.clauses.begin(), program.clauses.end(), [&](const Clause& other) {
           return other.where.line == clause.where.line &&
                  other.where.column == clause.where.column &&
                  to_string(other.description) == description;
         }) > 1;
}

}  // namespace

void Session::Impl::find_idle_clauses() {
  if (lost_records || options.is_set("cpu")) return;
  const auto uses = aggregation_use(programs);
  std::map<const Clause*, bool> recorded;  // by clause: it records; whether a record came
  std::set<const Clause*> failed;
  for (std::uint32_t epid = 1; const Ecb* ecb = consumer.ecb(epid); ++epid) {
    if (ecb->role != EcbRole::normal || ecb->clause == nullptr) continue;
    bool& came = recorded[ecb->clause];
    came = came || ecb->records_read != 0 || ecb->size == 0;
    if (ecb->errors != 0) failed.insert(ecb->clause);
  }
  for (const CompiledProgram& compiled : programs) {
    for (const Clause& clause : compiled.program->clauses) {
      const auto found = recorded.find(&clause);
      if (found == recorded.end() || failed.contains(&clause) ||
          count(clause, ActionKind::speculate) > 0 || count(clause, ActionKind::commit) > 0 ||
          is_piece(clause, *compiled.program))
        continue;
      // The second exit() of a clause fails, which throws its record away.
      if (count(clause, ActionKind::exit) > 1) continue;
      bool idle = !found->second;
      if (!idle) {
        bool silent = true, nothing = false, something = false;
        for (const Action& action : clause.actions) {
          if (action.kind != ActionKind::aggregate) {
            silent = silent && action.kind == ActionKind::eval;
            continue;
          }
          const AggTable* table = aggregations.table(action.aggregation);
          if (table == nullptr) continue;
          const Added what = added(clause, action, uses.at(action.aggregation), *table, strsize());
          nothing = nothing || what == Added::no;
          something = something || what == Added::yes;
        }
        idle = silent && nothing && !something;
      }
      if (!idle) continue;
      std::string text = "clause never ran: " + to_string(clause.description);
      if (compiled.source.kind == ProgramSource::script)
        text += " (" + compiled.source.name + ":" + std::to_string(clause.where.line) + ")";
      if (clause.predicate) text += "; no firing made its predicate true";
      if (exited) text += clause.predicate ? " before exit()" : "; exit() came first";
      if (std::find(idle_clauses.begin(), idle_clauses.end(), text) == idle_clauses.end())
        idle_clauses.push_back(std::move(text));
    }
  }
}

std::vector<std::string> Session::idle_clauses() const { return impl_->idle_clauses; }

}  // namespace dtmalloc::dtrace
