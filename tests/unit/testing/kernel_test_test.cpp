// SPDX-License-Identifier: BSD-2-Clause
// The fixture itself.

#include <gtest/gtest-spi.h>

#include <dtmalloc/testing/kernel_test.hpp>

namespace dtmalloc {
namespace {

using KernelTestTest = KernelTest;

TEST_F(KernelTestTest, OwnsCpu0OfAFreshMachine) {
  EXPECT_EQ(Kernel::current(), &kernel());
  EXPECT_EQ(curcpu->id, 0);
  for (const malloc_type* type : kernel().types()) {
    EXPECT_EQ(kernel().type_stats(*type).numallocs, 0u) << type->ks_shortdesc;
  }
  EXPECT_EQ(console(), "");
}

TEST_F(KernelTestTest, CapturesTheConsole) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  kernel().malloc(10, &foo, M_WAITOK);
  kernel().malloc_uninit(&foo);
  EXPECT_EQ(console(),
            "Warning: memory type foo leaked memory on destroy (1 allocations, 16 bytes "
            "leaked).\n");
  EXPECT_NE(take_console(), "");
  EXPECT_EQ(take_console(), "");
}

TEST_F(KernelTestTest, DescribesLeaks) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  void* a = kernel().malloc(10, &foo, M_WAITOK);
  void* b = kernel().malloc(100, &foo, M_WAITOK);
  EXPECT_EQ(describe_leaks(kernel()), "foo: 2 allocations, 144 bytes\n");
  EXPECT_NONFATAL_FAILURE(TearDown(), "foo: 2 allocations, 144 bytes");
  kernel().free(a, &foo);
  kernel().free(b, &foo);
  EXPECT_EQ(describe_leaks(kernel()), "");
}

TEST_F(KernelTestTest, LetsBlocksLive_WhenLeaksAreAllowed) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  kernel().malloc(10, &foo, M_WAITOK);
  allow_leaks();
}

TEST_F(KernelTestTest, Reboots) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  void* p = kernel().malloc(10, &foo, M_WAITOK);
  kernel().free(p, &foo);
  KernelConfig config;
  config.cpus = 2;
  config.invariants = true;
  reboot(config);
  EXPECT_EQ(kernel().config().cpus, 2);
  EXPECT_EQ(Kernel::current(), &kernel());
  EXPECT_EQ(kernel().type("foo"), nullptr);
}

TEST_F(KernelTestTest, ExpectsPanics) {
  malloc_type& foo = kernel().define_type("M_FOO", "foo");
  EXPECT_KERNEL_PANIC(kernel().mallocarray(~std::size_t{0}, 2, &foo, M_WAITOK), "mallocarray");
  EXPECT_KERNEL_PANIC(kernel().malloc(1, &foo, M_WAITOK), "mallocarray");
}

// A statement of the failure macros sees no locals.
void no_panic() { EXPECT_KERNEL_PANIC(static_cast<void>(0), "text"); }
void another_panic() { EXPECT_KERNEL_PANIC(throw KernelPanic("other"), "text"); }

TEST(ExpectKernelPanic, Fails_WhenNothingOrAnotherTextPanics) {
  EXPECT_NONFATAL_FAILURE(no_panic(), "does not panic");
  EXPECT_NONFATAL_FAILURE(another_panic(), "panics with\n  other\nand not with\n  text");
}

}  // namespace
}  // namespace dtmalloc
