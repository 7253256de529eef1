// SPDX-License-Identifier: BSD-2-Clause
// The ways in which `dtmalloc overhead` runs a workload.
#include "overhead_plan.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::sim {
namespace {

using dtrace::ClauseInfo;
using dtrace::ProbeDescription;
using Set = std::set<std::size_t>;

ClauseInfo clause(std::uint32_t line, const std::string& probe,
                  std::vector<std::string> actions = {}, std::set<std::string> reads = {},
                  std::set<std::string> stores = {}) {
  ClauseInfo info;
  info.description = {"dtmalloc", "", "", probe, 0};
  if (probe == "BEGIN") info.description.provider = "dtrace";
  info.where.line = line;
  info.where.column = 1;
  info.actions = std::move(actions);
  info.reads = std::move(reads);
  info.stores = std::move(stores);
  return info;
}

Matched matched(const ProbeDescription& description) {
  if (description.provider == "dtrace") return Matched::once;
  return description.name == "nothing" ? Matched::nothing : Matched::some;
}

TEST(OverheadPlan, WithoutAProgramTheProbesOfDtmalloc) {
  const OverheadPlan plan = plan_overhead({}, matched);
  ASSERT_EQ(plan.probes.size(), 2u);
  EXPECT_EQ(to_string(plan.probes[0]), "dtmalloc:::malloc");
  EXPECT_EQ(to_string(plan.probes[1]), "dtmalloc:::free");
  ASSERT_EQ(plan.ways.size(), 5u);  // absent, disabled, each empty, both
  EXPECT_EQ(plan.ways[0].kind, Way::absent);
  EXPECT_EQ(plan.ways[1].kind, Way::disabled);
  EXPECT_EQ(plan.ways[plan.empty[1]].probes, Set{1});
  EXPECT_EQ(plan.ways[plan.all_empty].probes, (Set{0, 1}));
  EXPECT_EQ(plan.traced, 0u);
}

TEST(OverheadPlan, OneClauseIsMeasuredOnce) {
  const OverheadPlan plan = plan_overhead({{clause(1, "malloc", {"@"})}}, matched);
  ASSERT_EQ(plan.probes.size(), 1u);
  EXPECT_EQ(plan.all_empty, 0u);
  // absent, disabled, empty, the clause, without @
  EXPECT_EQ(plan.ways.size(), 5u);
  EXPECT_EQ(plan.of_clause[0].with, plan.traced);
  EXPECT_EQ(plan.of_clause[0].without, 1u);
  EXPECT_EQ(plan.of_aggregation[0].with, plan.traced);
  EXPECT_EQ(plan.ways[plan.of_aggregation[0].without].without, "@");
}

// REQ: OVERHEAD-08
TEST(OverheadPlan, AClauseRunsWithThoseWhoseVariablesItReads) {
  const OverheadPlan plan = plan_overhead(
      {{clause(1, "BEGIN", {""}, {}, {"x"}), clause(2, "entry", {""}, {}, {"self->t"}),
        clause(3, "malloc", {""}, {"self->t"}, {"self->u"}),
        clause(4, "free", {"@a", "@b"}, {"self->u", "x"}), clause(5, "other", {"printf"}, {"x"})}},
      matched);
  ASSERT_EQ(plan.clauses.size(), 4u);  // BEGIN always runs
  EXPECT_EQ(plan.needs[0], Set{});
  EXPECT_EQ(plan.needs[1], Set{0});
  EXPECT_EQ(plan.needs[2], (Set{0, 1}));
  EXPECT_EQ(plan.needs[3], Set{});
  EXPECT_EQ(plan.ways[plan.of_clause[2].with].clauses, (Set{0, 1, 2}));
  EXPECT_EQ(plan.ways[plan.of_clause[2].without].clauses, (Set{0, 1}));
  EXPECT_EQ(plan.of_clause[2].without, plan.of_clause[1].with);  // the same way
  EXPECT_EQ(plan.of_clause[3].without, 1u);
  EXPECT_EQ(plan.aggregations, (std::vector<std::string>{"@a", "@b"}));
}

// REQ: OVERHEAD-08
TEST(OverheadPlan, ClausesThatNeedEachOtherRunTogether) {
  const OverheadPlan plan = plan_overhead(
      {{clause(1, "malloc", {""}, {"n"}, {"n"}), clause(2, "free", {""}, {"n"}, {"n"})}}, matched);
  EXPECT_EQ(plan.needs[0], Set{1});
  EXPECT_EQ(plan.needs[1], Set{0});
  EXPECT_EQ(plan.of_clause[0].with, plan.traced);
  EXPECT_EQ(plan.ways[plan.of_clause[0].without].clauses, Set{1});
}

// REQ: OVERHEAD-08
TEST(OverheadPlan, PiecesOfAClauseAreOne) {
  const OverheadPlan plan =
      plan_overhead({{clause(1, "malloc", {""}, {}, {"this->c"}),
                      clause(1, "malloc", {"@a"}, {"this->c"}), clause(7, "malloc", {"@a"})},
                     {clause(1, "malloc", {"trace"})}},
                    matched);
  ASSERT_EQ(plan.clauses.size(), 3u);  // another program has its own line 1
  EXPECT_EQ(plan.clauses[0].pieces, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(plan.clauses[1].pieces, std::vector<std::size_t>{2});
  EXPECT_EQ(plan.clauses[2].program, 1u);
  EXPECT_TRUE(plan.needs[0].empty());
  EXPECT_EQ(plan.probes.size(), 1u);
}

// REQ: OVERHEAD-11
TEST(OverheadPlan, NamesWhatIsLeftOut) {
  const OverheadPlan plan = plan_overhead(
      {{clause(1, "BEGIN", {"exit"}), clause(2, "nothing", {"system", "exit", "printf"})}},
      matched);
  EXPECT_EQ(plan.left_out, (std::vector<std::string>{"exit()", "system()"}));
  EXPECT_TRUE(plan.probes.empty());  // -Z: a description may match nothing
  EXPECT_EQ(plan.clauses.size(), 1u);
}

}  // namespace
}  // namespace dtmalloc::sim
