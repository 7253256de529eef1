// SPDX-License-Identifier: BSD-2-Clause
// A GoogleTest fixture with a machine of its own.
//
// Example:
//   using FooTest = dtmalloc::KernelTest;
//   TEST_F(FooTest, FreesWhatItTook) {
//     malloc_type& foo = kernel().define_type("M_FOO", "foo");
//     void* p = kernel().malloc(100, &foo, M_WAITOK);
//     kernel().free(p, &foo);
//     EXPECT_KERNEL_PANIC(kernel().mallocarray(~0ul, 2, &foo, M_WAITOK), "overflow");
//   }                                                  // a leak would fail the test here
//
// Errors:        failures of the test.
// Thread safety: as GoogleTest's; the test's thread owns CPU 0.
// Source:        src/README.md.
#pragma once

#include <gtest/gtest.h>

#include <dtmalloc/kernel.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dtmalloc {

class KernelTest : public ::testing::Test {
 public:
  // 4 CPUs, 512 MB, no debug options.
  KernelTest();
  explicit KernelTest(const KernelConfig& config);
  ~KernelTest() override;

  Kernel& kernel() { return *kernel_; }
  // Another machine instead; the old one must not leak. The test's thread owns its CPU 0.
  void reboot(const KernelConfig& config);
  // What the kernel printed on its console since the last take_console().
  std::string console() const;
  std::string take_console();
  // The blocks that live at the end are no failure (by default they are).
  void allow_leaks() { leaks_allowed_ = true; }

 protected:
  void TearDown() override;

 private:
  void boot(const KernelConfig& config);
  void check_leaks();

  struct Console {
    mutable std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<Console> console_ = std::make_shared<Console>();
  std::unique_ptr<Kernel> kernel_;
  bool leaks_allowed_ = false;
};

// One line for each type that has live blocks: "foo: 2 allocations, 48 bytes", and with a ledger
// one for each call site and request: "  2 of 20 bytes at foo_attach". Empty: none.
std::string describe_leaks(const Kernel& kernel);

}  // namespace dtmalloc

// The statement panics the machine with a text that contains `part`.
#define DTM_KERNEL_PANIC_(statement, part, fail)                                                \
  do {                                                                                          \
    std::optional<std::string> dtm_panic_;                                                      \
    try {                                                                                       \
      statement;                                                                                \
    } catch (const ::dtmalloc::KernelPanic& dtm_caught_) {                                      \
      dtm_panic_ = dtm_caught_.what();                                                          \
    }                                                                                           \
    if (!dtm_panic_) {                                                                          \
      fail() << #statement " does not panic";                                                   \
    } else if (dtm_panic_->find(part) == std::string::npos) {                                   \
      fail() << #statement " panics with\n  " << *dtm_panic_ << "\nand not with\n  " << (part); \
    }                                                                                           \
  } while (false)
#define EXPECT_KERNEL_PANIC(statement, part) DTM_KERNEL_PANIC_(statement, part, ADD_FAILURE)
#define ASSERT_KERNEL_PANIC(statement, part) DTM_KERNEL_PANIC_(statement, part, FAIL)
