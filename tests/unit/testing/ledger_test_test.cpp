// SPDX-License-Identifier: BSD-2-Clause
// The fixture with a ledger, its helpers, the sweep.

#include <gtest/gtest-spi.h>

#include <dtmalloc/testing/ledger_test.hpp>

namespace dtmalloc {
namespace {

// The example of the header.
using FooTest = LedgerTest;

TEST_F(FooTest, AttachesAndDetaches) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  const CallSite site(kernel(), "foo_attach");
  void* p = kernel().malloc(100, &foo, M_WAITOK);
  kernel().free(p, &foo);
  EXPECT_TRUE(no_leaks(kernel()));
  EXPECT_EQ(peak_bytes(kernel(), foo), 128);
  EXPECT_EQ(peak_blocks(kernel(), foo), 1);
}

TEST_F(FooTest, LeaksAreNamedBySiteAndRequest) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  std::vector<void*> blocks;
  {
    const CallSite outer(kernel(), "foo_attach");
    blocks.push_back(kernel().malloc(20, &foo, M_WAITOK));
    blocks.push_back(kernel().malloc(20, &foo, M_WAITOK));
    const CallSite inner(kernel(), "foo_alloc");
    blocks.push_back(kernel().malloc(100, &foo, M_WAITOK));
  }
  const ::testing::AssertionResult result = no_leaks(kernel());
  EXPECT_FALSE(result);
  EXPECT_STREQ(result.message(),
               "there are live blocks\n"
               "foo: 3 allocations, 192 bytes\n"
               "  1 of 100 bytes at foo_alloc < foo_attach\n"
               "  2 of 20 bytes at foo_attach\n");
  EXPECT_NONFATAL_FAILURE(TearDown(), "2 of 20 bytes at foo_attach");
  for (void* block : blocks) kernel().free(block, &foo);
}

TEST_F(FooTest, FindingsFailTheTest_UnlessTheyAreAllowed) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  EXPECT_TRUE(no_findings(kernel()));
  kernel().free(kernel().malloc(20, &foo, M_WAITOK), kernel().type("temp"));
  EXPECT_FALSE(no_findings(kernel()));
  allow_leaks();
  EXPECT_NONFATAL_FAILURE(TearDown(), "allocated as foo, freed as temp");
  allow_findings();
}

// A driver of two blocks; `careful` is whether it frees the first when the second fails.
struct Driver {
  Kernel& k;
  malloc_type& type;
  bool careful;
  void run() {
    void* first = k.malloc(100, &type, M_NOWAIT);
    if (first == nullptr) return;
    void* second = k.malloc(2000, &type, M_NOWAIT);
    if (second == nullptr && !careful) return;
    k.free(second, &type);
    k.free(first, &type);
  }
};

TEST_F(FooTest, EachAllocationFailsOnce) {
  // REQ: LEDGER-17 LEDGER-21
  Driver driver{kernel(), kernel().define_type("M_FOO", "foo"), true};
  std::vector<std::uint64_t> tried;
  EXPECT_EQ(for_each_failing_allocation(kernel(),
                                        [&](std::uint64_t n) {
                                          tried.push_back(n);
                                          driver.run();
                                        }),
            2u);
  EXPECT_EQ(tried, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(FooTest, WhatIsLeftBehindIsNamed) {
  // REQ: LEDGER-21
  Driver driver{kernel(), kernel().define_type("M_FOO", "foo"), false};
  const CallSite site(kernel(), "foo_attach");
  static FooTest* self;
  static Driver* drives;
  self = this;
  drives = &driver;
  EXPECT_NONFATAL_FAILURE(
      for_each_failing_allocation(self->kernel(), [](std::uint64_t) { drives->run(); }),
      "with allocation 2 failing (foo at foo_attach) the types hold other blocks than before\n"
      "  foo: +1 allocations, +128 bytes\n"
      "  foo: 100 bytes at foo_attach\n");
  allow_leaks();
}

TEST_F(FooTest, SweepsOneTypeOnly) {
  Driver foo{kernel(), kernel().define_type("M_FOO", "foo"), true};
  Driver bar{kernel(), kernel().define_type("M_BAR", "bar"), true};
  const auto both = [&](std::uint64_t) {
    foo.run();
    bar.run();
  };
  EXPECT_EQ(for_each_failing_allocation(kernel(), both, {.type = "M_BAR"}), 2u);
  EXPECT_EQ(for_each_failing_allocation(kernel(), both, {.site = "nowhere"}), 0u);
  EXPECT_EQ(for_each_failing_allocation(kernel(), both), 4u);
}

TEST_F(FooTest, ASweepThatNeverEndsIsAFailure) {
  static FooTest* self;
  self = this;
  EXPECT_NONFATAL_FAILURE(
      for_each_failing_allocation(self->kernel(),
                                  [](std::uint64_t) {
                                    malloc_type* temp = self->kernel().type("temp");
                                    while (self->kernel().malloc(1, temp, M_NOWAIT) == nullptr) {
                                    }
                                    for (const LedgerBlock& block : self->ledger().live())
                                      self->kernel().free(const_cast<void*>(block.host), temp);
                                    for (int i = 0; i < 50; ++i)
                                      self->kernel().free(self->kernel().malloc(1, temp, M_NOWAIT),
                                                          temp);
                                  },
                                  {.limit = 5}),
      "after 5 failing allocations there are still more");
}

}  // namespace
}  // namespace dtmalloc
