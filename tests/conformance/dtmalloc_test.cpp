// SPDX-License-Identifier: BSD-2-Clause
// The provider dtmalloc(4), law by law, through C++ callbacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace dtmalloc::dtrace {
namespace {

struct Seen {
  ProbeId id;
  std::uintptr_t arg0, arg1, arg2, arg3, arg4;
  std::uint64_t numallocs;  // of the line at arg2, when it fired
};

class DtmallocTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KernelConfig config;
    config.cpus = 2;
    config.fixed_cpus = true;
    config.mem = mem;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
  }
  void TearDown() override {
    framework = nullptr;
    kernel = nullptr;
  }
  EnablingId trace(const ProbeDescription& description) {
    auto enabling = framework->enable(
        description,
        [](const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
           std::uintptr_t arg3, std::uintptr_t arg4) {
          static_cast<std::vector<Seen>*>(firing.context)
              ->push_back({firing.id, arg0, arg1, arg2, arg3, arg4,
                           reinterpret_cast<const malloc_type_stats*>(arg2)->mts_numallocs});
        },
        &seen);
    EXPECT_TRUE(enabling);
    return enabling ? *enabling : 0;
  }
  std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const Framework::ProbeInfo& probe : framework->probes()) {
      if (probe.description.provider == "dtmalloc") result.push_back(to_string(probe.description));
    }
    return result;
  }
  // (function:name, arg3, arg4 as int)
  using Row = std::tuple<std::string, std::uint64_t, int>;
  std::vector<Row> rows() {
    std::vector<Row> result;
    for (const Seen& firing : seen) {
      const ProbeDescription description = framework->probe(firing.id).description;
      result.emplace_back(description.function + ":" + description.name, firing.arg3,
                          static_cast<int>(firing.arg4));
    }
    return result;
  }

  std::uint64_t mem = 1ull << 30;
  std::vector<Seen> seen;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
};

// REQ: DTMALLOC-01
TEST_F(DtmallocTest, ProbesAppearWhenAConsumerOpens) {
  EXPECT_TRUE(names().empty());
  framework->open();
  const std::size_t before = names().size();
  EXPECT_GT(before, 0u);
  kernel->define_type("M_LATE", "late");
  EXPECT_EQ(names().size(), before);
  EXPECT_TRUE(framework->match({"dtmalloc", "", "late", "malloc", 0}).empty());
  framework->open();
  EXPECT_EQ(names().size(), before + 2);
  EXPECT_EQ(framework->match({"dtmalloc", "", "late", "malloc", 0}).size(), 1u);
}

// REQ: DTMALLOC-02
TEST_F(DtmallocTest, FunctionIsTheCutDescriptionWithUnderscores) {
  struct {
    const char* symbol;
    std::string shortdesc, function;
  } const kRows[] = {
      {"M_1", "foo bar", "foo_bar"},
      {"M_2", "tab\tnl\nvt\vff\fcr\r", "tab_nl_vt_ff_cr_"},
      {"M_3", "a:b,c*d?e[f]\\g/h", "a:b,c*d?e[f]\\g/h"},
      {"M_4", std::string(300, 'x'), std::string(191, 'x')},
      {"M_5", " lead", "_lead"},
  };
  for (const auto& row : kRows) kernel->define_type(row.symbol, row.shortdesc);
  framework->open();
  const std::vector<std::string> all = names();
  for (const auto& row : kRows) {
    for (const char* name : {":malloc", ":free"}) {
      const std::string probe = "dtmalloc::" + row.function + name;
      EXPECT_EQ(std::count(all.begin(), all.end(), probe), 1) << probe;
    }
  }
}

// REQ: DTMALLOC-03
TEST_F(DtmallocTest, NewestTypeFirstMallocBeforeFree) {
  kernel->define_type("M_A", "first");
  kernel->define_type("M_B", "second");
  framework->open();
  const std::vector<std::string> all = names();
  ASSERT_GE(all.size(), 4u);
  EXPECT_EQ(all[0], "dtmalloc::second:malloc");
  EXPECT_EQ(all[1], "dtmalloc::second:free");
  EXPECT_EQ(all[2], "dtmalloc::first:malloc");
  EXPECT_EQ(all[3], "dtmalloc::first:free");
  EXPECT_EQ(framework->match({"dtmalloc", "", "second", "malloc", 0})[0], 4u);  // after dtrace's
}

// REQ: DTMALLOC-04
TEST_F(DtmallocTest, EachOpenCostsTempOnePair) {
  malloc_type& temp = *kernel->type("temp");
  EXPECT_EQ(kernel->type_stats(temp).numallocs, 0u);
  framework->open();
  EXPECT_EQ(kernel->type_stats(temp).numallocs, 1u);
  EXPECT_EQ(kernel->type_stats(temp).numfrees, 1u);
  framework->open();
  EXPECT_EQ(kernel->type_stats(temp).numallocs, 2u);
}

// REQ: DTMALLOC-05
TEST_F(DtmallocTest, ADescriptionCreatesNothing) {
  EXPECT_TRUE(framework->match({"dtmalloc", "", "temp", "malloc", 0}).empty());
  EXPECT_TRUE(names().empty());
}

// REQ: DTMALLOC-06
TEST_F(DtmallocTest, CollidingNamesShareThePairOfTheNewest) {
  malloc_type& older = kernel->define_type("M_A", "a b");
  malloc_type& newer = kernel->define_type("M_B", "a_b");
  framework->open();
  ASSERT_EQ(framework->match({"dtmalloc", "", "a_b", "", 0}).size(), 2u);
  trace({"dtmalloc", "", "a_b", "malloc", 0});
  void* one = kernel->malloc(16, &older, M_WAITOK);
  EXPECT_TRUE(seen.empty());
  void* two = kernel->malloc(16, &newer, M_WAITOK);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].arg0, reinterpret_cast<std::uintptr_t>(&newer));
  kernel->free(one, &older);
  kernel->free(two, &newer);
  // One registered later never displaces it.
  malloc_type& third = kernel->define_type("M_C", "a\tb");
  framework->open();
  void* block = kernel->malloc(16, &third, M_WAITOK);
  EXPECT_EQ(seen.size(), 1u);
  kernel->free(block, &third);
}

// REQ: DTMALLOC-07
TEST_F(DtmallocTest, EnablingWritesTheSlotAndTheFlag) {
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  const ProbeId malloc_id = framework->match({"dtmalloc", "", "a", "malloc", 0})[0];
  EXPECT_FALSE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
  const EnablingId one = trace({"dtmalloc", "", "a", "malloc", 0});
  const EnablingId again = trace({"dtmalloc", "", "a", "malloc", 0});
  const EnablingId other = trace({"dtmalloc", "", "a", "free", 0});
  EXPECT_EQ(type.ks_mti.mti_probes[0], malloc_id);
  EXPECT_EQ(type.ks_mti.mti_probes[1], malloc_id + 1);
  EXPECT_TRUE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
  EXPECT_TRUE(kernel->cpus().cpu(1).dtrace_malloc_enabled);
  framework->disable(one);
  EXPECT_EQ(type.ks_mti.mti_probes[0], malloc_id);
  framework->disable(again);
  EXPECT_EQ(type.ks_mti.mti_probes[0], 0u);
  EXPECT_TRUE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
  framework->disable(other);
  EXPECT_EQ(type.ks_mti.mti_probes[1], 0u);
  EXPECT_FALSE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
}

// REQ: DTMALLOC-08
TEST_F(DtmallocTest, Attributes) {
  framework->open();
  const ProviderAttributes attributes =
      framework->probe(framework->match({"dtmalloc", "", "temp", "malloc", 0})[0]).attributes;
  const auto is = [](const Attribute& attribute, Stability stability, DependencyClass dependency) {
    return attribute.name == stability && attribute.data == stability &&
           attribute.dependency == dependency;
  };
  EXPECT_TRUE(is(attributes.provider, Stability::stable, DependencyClass::common));
  EXPECT_TRUE(is(attributes.module, Stability::private_, DependencyClass::unknown));
  EXPECT_TRUE(is(attributes.function, Stability::private_, DependencyClass::unknown));
  EXPECT_TRUE(is(attributes.name, Stability::stable, DependencyClass::common));
  EXPECT_TRUE(is(attributes.args, Stability::stable, DependencyClass::common));
}

// REQ: DTMALLOC-09
TEST_F(DtmallocTest, ArgumentTypes) {
  framework->open();
  for (const char* name : {"malloc", "free"}) {
    std::vector<std::string> types;
    for (const ArgDescription& argument :
         framework->arguments(framework->match({"dtmalloc", "", "temp", name, 0})[0])) {
      types.push_back(argument.native);
    }
    EXPECT_EQ(types,
              (std::vector<std::string>{"struct malloc_type *", "struct malloc_type_internal *",
                                        "struct malloc_type_stats *", "unsigned long", "int"}));
  }
}

// REQ: DTMALLOC-10, DTMALLOC-11
TEST_F(DtmallocTest, ArgumentsOfMallocAndFree) {
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  trace({"dtmalloc", "", "a", "", 0});
  void* block = kernel->malloc(100, &type, M_WAITOK);
  kernel->free(block, &type);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].arg0, reinterpret_cast<std::uintptr_t>(&type));
  EXPECT_EQ(seen[0].arg1, reinterpret_cast<std::uintptr_t>(&type.ks_mti));
  EXPECT_EQ(seen[0].arg2, seen[1].arg2);
  EXPECT_EQ(seen[0].numallocs, 1u);  // the update came first
  EXPECT_EQ(rows(), (std::vector<Row>{{"a:malloc", 128, 3}, {"a:free", 128, 0}}));
  seen.clear();
  void* large = kernel->malloc(65537, &type, M_WAITOK);
  kernel->free(large, &type);
  EXPECT_EQ(rows(), (std::vector<Row>{{"a:malloc", 69632, -1}, {"a:free", 69632, 0}}));
  EXPECT_EQ(seen[0].arg4, ~std::uintptr_t{0});
}

class SmallDtmallocTest : public DtmallocTest {
 protected:
  SmallDtmallocTest() { mem = 1ull << 20; }
};

// REQ: DTMALLOC-12
TEST_F(SmallDtmallocTest, FailedSmallFiresWithSizeZeroFailedLargeDoesNot) {
  malloc_type& big = kernel->define_type("M_BIG", "big");
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  std::vector<void*> blocks;
  while (void* block = kernel->malloc(4096, &big, M_NOWAIT)) blocks.push_back(block);
  trace({"dtmalloc", "", "a", "malloc", 0});
  EXPECT_EQ(kernel->malloc(3000, &type, M_NOWAIT), nullptr);
  EXPECT_EQ(kernel->malloc(70000, &type, M_NOWAIT), nullptr);
  EXPECT_EQ(rows(), (std::vector<Row>{{"a:malloc", 0, 9}}));
  EXPECT_EQ(kernel->type_stats(type).numallocs, 0u);
  for (void* block : blocks) kernel->free(block, &big);
}

// REQ: DTMALLOC-13
TEST_F(DtmallocTest, ReallocAndFreeOfNull) {
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  void* block = kernel->malloc(100, &type, M_WAITOK);
  trace({"dtmalloc", "", "a", "", 0});
  block = kernel->realloc(block, 128, &type, M_WAITOK);
  kernel->free(nullptr, &type);
  EXPECT_TRUE(seen.empty());
  block = kernel->realloc(block, 64, &type, M_WAITOK);
  EXPECT_EQ(rows(), (std::vector<Row>{{"a:malloc", 64, 2}, {"a:free", 128, 0}}));
  kernel->free(block, &type);
}

// REQ: DTMALLOC-14
TEST_F(DtmallocTest, AccountingCallsAndContigmallocFire) {
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  trace({"dtmalloc", "", "a", "", 0});
  kernel->malloc_type_allocated(&type, 5000);
  kernel->malloc_type_allocated(&type, 0);
  kernel->malloc_type_freed(&type, 5000);
  void* block = kernel->contigmalloc(5000, &type, M_WAITOK);
  kernel->free(block, &type);
  EXPECT_EQ(rows(), (std::vector<Row>{{"a:malloc", 5000, -1},
                                      {"a:free", 5000, 0},
                                      {"a:malloc", 8192, -1},
                                      {"a:free", 8192, 0}}));
}

// REQ: DTMALLOC-15
TEST_F(DtmallocTest, AProbeOfAnUnloadedTypeStays) {
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  const std::vector<std::string> before = names();
  kernel->malloc_uninit(&type);
  EXPECT_EQ(names(), before);
  malloc_type& again = kernel->define_type("M_A", "a");
  framework->open();
  EXPECT_EQ(names(), before);
  trace({"dtmalloc", "", "a", "", 0});
  kernel->free(kernel->malloc(16, &again, M_WAITOK), &again);
  EXPECT_TRUE(seen.empty());
}

// REQ: DTMALLOC-17
TEST_F(DtmallocTest, FiringsAreWhatTheStatisticsCount) {
  malloc_type& type = kernel->define_type("M_A", "a");
  framework->open();
  trace({"dtmalloc", "", "a", "malloc", 0});
  std::vector<void*> blocks;
  for (std::size_t size = 1; size < 200000; size = size * 3 + 1) {
    blocks.push_back(kernel->malloc(size, &type, M_WAITOK));
  }
  const TypeStats stats = kernel->type_stats(type);
  std::uint64_t bytes = 0;
  for (const Seen& firing : seen) bytes += firing.arg3;
  EXPECT_EQ(seen.size(), stats.numallocs);
  EXPECT_EQ(bytes, stats.memalloced);
  for (void* block : blocks) kernel->free(block, &type);
}

}  // namespace
}  // namespace dtmalloc::dtrace
