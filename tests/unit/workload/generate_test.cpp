// SPDX-License-Identifier: BSD-2-Clause
// The generator of workloads.

#include <gtest/gtest.h>

#include <dtmalloc/workload/generate.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <map>
#include <set>

namespace dtmalloc::workload {
namespace {

TEST(Generate, MakesTheSameTextForTheSameSeed) {
  // REQ: LAW-7
  GenerateOptions options;
  options.seed = 5;
  options.threads = 3;
  options.foreign_free_share = 50;
  const std::string text = generate_text(options);
  EXPECT_EQ(text, generate_text(options));
  options.seed = 6;
  EXPECT_NE(text, generate_text(options));
}

// Pins the draws: another compiler or platform makes the same workload.
TEST(Generate, MakesThisText_WhenTheSeedIsOne) {
  // REQ: LAW-7
  GenerateOptions options;
  options.operations = 6;
  options.types = 1;
  options.cpus = 2;
  options.free_all = true;
  EXPECT_EQ(generate_text(options),
            "# generated: seed 1, 6 operations\n"
            "kernel cpus=2 seed=1\n"
            "type M_GEN1 \"gen1\"\n"
            "b0 = malloc 415 M_TEMP M_WAITOK\n"
            "free b0\n"
            "b1 = malloc 3680 M_GEN1 M_NOWAIT|M_ZERO\n"
            "free b1\n"
            "b2 = malloc_aligned 204 64 M_GEN1 M_WAITOK\n"
            "b3 = malloc 84 M_GEN1 M_WAITOK\n"
            "free b2\n"
            "free b3\n");
}

TEST(Generate, SurvivesPrintingAndParsing) {
  // REQ: LAW-8
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.operations = 200;
    options.threads = static_cast<int>(seed % 4);
    options.foreign_free_share = 20;
    options.wrong_type_share = 10;
    options.invariants = seed % 2 == 0;
    options.zones = static_cast<int>(seed % 8);
    const Workload workload = generate(options);
    const Result<Workload> again = parse(print(workload), "again.wl");
    ASSERT_TRUE(again.has_value()) << to_string(again.error());
    EXPECT_EQ(workload, *again) << "seed " << seed;
  }
}

// Counts how often each name is set and released in all bodies.
void count_uses(const Workload& w, std::map<Index, int>& set, std::map<Index, int>& gone) {
  for (const std::vector<Op>& body : w.bodies) {
    for (const Op& op : body) {
      if (op.kind == OpKind::free || op.kind == OpKind::zfree) {
        ++gone[op.target.name];
      } else if (op.target.name != kNone) {
        ++set[op.target.name];
      }
      if (op.source.name != kNone) ++gone[op.source.name];
    }
  }
}

TEST(Generate, SetsEachBlockOnceAndReleasesItOnce_WhenAllAreFreed) {
  for (const int threads : {0, 4}) {
    GenerateOptions options;
    options.threads = threads;
    options.foreign_free_share = 40;
    options.free_all = true;
    std::map<Index, int> set, gone;
    count_uses(generate(options), set, gone);
    EXPECT_EQ(set.size(), gone.size());
    for (const auto& [name, count] : set) {
      EXPECT_EQ(count, 1);
      EXPECT_EQ(gone[name], 1);
    }
  }
}

TEST(Generate, HasAsManyOperationsAndThreadsAsAsked) {
  GenerateOptions options;
  options.operations = 321;
  options.threads = 5;
  const Workload w = generate(options);
  EXPECT_EQ(w.threads.size(), 5u);
  std::size_t operations = 0;
  for (std::size_t i = 1; i < w.bodies.size(); ++i) {
    for (const Op& op : w.bodies[i]) operations += op.kind != OpKind::cpu;
  }
  EXPECT_EQ(operations, 321u);
}

TEST(Generate, AllocatesAndFreesInWaves_WhenAsked) {
  GenerateOptions options;
  options.operations = 400;
  options.wave = 200;
  options.free_share = 10;
  options.other_cpu_share = options.realloc_share = options.other_share = 0;
  const Workload w = generate(options);
  std::size_t number = 0, early = 0, late = 0;
  for (const Op& op : w.bodies[0]) {
    if (op.kind == OpKind::type) continue;
    if (op.kind == OpKind::free || op.kind == OpKind::zfree) ++(number < 200 ? early : late);
    ++number;
  }
  EXPECT_EQ(number, 400u);
  EXPECT_LT(early, 40u);
  EXPECT_GT(late, 160u);
}

TEST(Generate, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](auto change) {
    GenerateOptions options;
    change(options);
    const auto diagnostic = check(options);
    return diagnostic && diagnostic->tag == "WL_GENERATE";
  };
  EXPECT_FALSE(check(GenerateOptions{}));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.cpus = 0; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.cpus = 1025; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.types = -1; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.threads = -1; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.free_share = 101; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.free_share = o.realloc_share = 60; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.sizes.clear(); }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.sizes = {{9, 8, 1}}; }));
  EXPECT_TRUE(refused([](GenerateOptions& o) { o.sizes = {{1, 8, 0}}; }));
}

}  // namespace
}  // namespace dtmalloc::workload
