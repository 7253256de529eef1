// SPDX-License-Identifier: BSD-2-Clause
// Which clauses depend on which, and the ways in which the workload runs.

#include "overhead_plan.hpp"

#include <algorithm>

namespace dtmalloc::sim {
namespace {

using dtrace::ClauseInfo;

// What would end the measuring, or act on the host again and again.
constexpr const char* kLeftOut[] = {"exit", "system", "freopen", "ftruncate"};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

void enter(OverheadPlan& plan, std::size_t program, std::size_t index, const ClauseInfo& info) {
  const auto same = [&](const PlannedClause& clause) {
    return clause.program == program && clause.where.line == info.where.line &&
           clause.where.column == info.where.column;
  };
  auto found = std::find_if(plan.clauses.begin(), plan.clauses.end(), same);
  if (found == plan.clauses.end()) {
    PlannedClause clause;
    clause.program = program;
    clause.description = info.description;
    clause.where = info.where;
    plan.clauses.push_back(std::move(clause));
    found = plan.clauses.end() - 1;
  }
  found->pieces.push_back(index);
  found->reads.insert(info.reads.begin(), info.reads.end());
  found->stores.insert(info.stores.begin(), info.stores.end());
  for (const std::string& action : info.actions) {
    if (!action.starts_with('@')) continue;
    found->aggregations.insert(action);
    add_once(plan.aggregations, action);
  }
}

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

// Whose variables a clause reads, and whose these read, and so on; without itself.
std::set<std::size_t> needs_of(const std::vector<PlannedClause>& clauses, std::size_t clause) {
  std::set<std::size_t> needs;
  std::vector<std::size_t> open{clause};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (std::size_t i = 0; i < clauses.size(); ++i) {
      if (i == clause || needs.contains(i) || !meet(clauses[at].reads, clauses[i].stores)) continue;
      needs.insert(i);
      open.push_back(i);
    }
  }
  return needs;
}

}  // namespace

std::size_t OverheadPlan::way(const Way& wanted) {
  const auto found = std::find(ways.begin(), ways.end(), wanted);
  if (found != ways.end()) return static_cast<std::size_t>(found - ways.begin());
  ways.push_back(wanted);
  return ways.size() - 1;
}

OverheadPlan plan_overhead(const std::vector<std::vector<ClauseInfo>>& programs,
                           const std::function<Matched(const dtrace::ProbeDescription&)>& matched) {
  OverheadPlan plan;
  for (std::size_t program = 0; program < programs.size(); ++program) {
    for (std::size_t i = 0; i < programs[program].size(); ++i) {
      const ClauseInfo& info = programs[program][i];
      for (const std::string& action : info.actions)
        for (const char* name : kLeftOut)
          if (action == name) add_once(plan.left_out, action + "()");
      if (matched(info.description) != Matched::once) enter(plan, program, i, info);
    }
  }
  for (const PlannedClause& clause : plan.clauses) {
    const auto& known = plan.probes;
    if (std::find(known.begin(), known.end(), clause.description) == known.end() &&
        matched(clause.description) == Matched::some)
      plan.probes.push_back(clause.description);
  }
  if (programs.empty())
    plan.probes = {{"dtmalloc", "", "", "malloc", 0}, {"dtmalloc", "", "", "free", 0}};

  plan.way({Way::absent, {}, {}, {}});
  const std::size_t disabled = plan.way({Way::disabled, {}, {}, {}});
  Way every{Way::empty, {}, {}, {}};
  for (std::size_t i = 0; i < plan.probes.size(); ++i) {
    plan.empty.push_back(plan.way({Way::empty, {i}, {}, {}}));
    every.probes.insert(i);
  }
  if (every.probes.size() > 1) plan.all_empty = plan.way(every);
  if (programs.empty()) return plan;
  Way traced{Way::traced, {}, {}, {}};
  for (std::size_t i = 0; i < plan.clauses.size(); ++i) traced.clauses.insert(i);
  plan.traced = plan.way(traced);
  for (std::size_t i = 0; i < plan.clauses.size(); ++i) {
    const std::set<std::size_t> needs = needs_of(plan.clauses, i);
    plan.needs.push_back(needs);
    Way with{Way::traced, {}, needs, {}};
    const std::size_t without = needs.empty() ? disabled : plan.way(with);
    with.clauses.insert(i);
    plan.of_clause.push_back({plan.way(with), without});
  }
  for (const std::string& aggregation : plan.aggregations) {
    Way without = traced;
    without.without = aggregation;
    plan.of_aggregation.push_back({plan.traced, plan.way(without)});
  }
  return plan;
}

}  // namespace dtmalloc::sim
