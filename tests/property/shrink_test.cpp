// SPDX-License-Identifier: BSD-2-Clause
// The shrinker and the messages of property tests.

#include "support/shrink.hpp"

#include <gtest/gtest.h>

#include "support/op_gen.hpp"

namespace dtmalloc::support {
namespace {

using workload::Op;
using workload::OpKind;
using workload::Workload;

// Holds unless some zfree follows, somewhere, a malloc of more than 4096 bytes.
std::string invented_law(const Workload& w) {
  bool large = false;
  for (const std::vector<Op>& body : w.bodies) {
    for (const Op& op : body) {
      large |= op.kind == OpKind::malloc && op.value.number > 4096;
      if (large && op.kind == OpKind::zfree) return "a zfree after a large block\n";
    }
  }
  return "";
}

TEST(Shrink, LeavesOnlyWhatTheFailureNeeds) {
  workload::GenerateOptions options = mixed_profile(3);
  options.seed = 3;
  options.operations = 2000;
  const Workload workload = generate(options);
  ASSERT_NE(invented_law(workload), "");
  const Workload small =
      shrink(workload, [](const Workload& w) { return !invented_law(w).empty(); });
  // The large block, and a zfree with the allocation of what it frees: at most three statements.
  EXPECT_LE(statement_count(small), 3u) << print(small);
  EXPECT_NE(invented_law(small), "");
  const auto again = workload::parse(print(small), "small.wl");
  ASSERT_TRUE(again.has_value()) << to_string(again.error());
  EXPECT_EQ(*again, small);
}

TEST(Shrink, ShrinksThreads) {
  workload::GenerateOptions options = threads_profile(4);
  options.seed = 4;
  const Workload workload = generate(options);
  const auto has_contig = [](const Workload& w) {
    const auto again = workload::parse(print(w), "candidate.wl");
    EXPECT_TRUE(again.has_value()) << to_string(again.error()) << print(w);
    if (!again) return false;
    for (std::size_t i = 1; i < again->bodies.size(); ++i) {
      for (const Op& op : again->bodies[i]) {
        if (op.kind == OpKind::contigmalloc) return true;
      }
    }
    return false;
  };
  ASSERT_TRUE(has_contig(workload));
  const Workload small = shrink(workload, has_contig);
  EXPECT_EQ(statement_count(small), 2u) << print(small);  // the thread and the call
}

TEST(Shrink, StopsAfterSoManyAttempts) {
  const Workload workload = generate(mixed_profile(1));
  int calls = 0;
  const auto never = [&](const Workload&) { return ++calls == 0; };
  EXPECT_EQ(shrink(workload, never, 10), workload);
  EXPECT_EQ(calls, 10);
}

TEST(Counterexample, NamesSeedAndCommandAndPrintsTheWorkload) {
  workload::GenerateOptions options = mixed_profile(3);
  options.seed = 3;
  const Workload workload = generate(options);
  const std::string text = counterexample(3, workload, invented_law, invented_law(workload));
  EXPECT_EQ(text.find("seed 3: a zfree after a large block"), 0u) << text;
  EXPECT_NE(text.find("\nkernel cpus=2"), std::string::npos) << text;
  EXPECT_NE(text.find("# repeat: DTM_SEED=3 DTM_CASES=1 dtm_property_test "
                      "--gtest_filter=Counterexample.NamesSeedAndCommandAndPrintsTheWorkload"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace dtmalloc::support
