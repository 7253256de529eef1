// SPDX-License-Identifier: BSD-2-Clause
// Tests of kernel code with the ledger: leaks by site, wrong frees, peaks, and every allocation
// failing once.
//
// Example:
//   using FooTest = dtmalloc::LedgerTest;
//   TEST_F(FooTest, AttachesAndDetaches) {
//     malloc_type& foo = kernel().define_type("M_FOO", "foo");
//     const CallSite site(kernel(), "foo_attach");
//     void* p = kernel().malloc(100, &foo, M_WAITOK);
//     kernel().free(p, &foo);
//     EXPECT_TRUE(no_leaks(kernel()));
//     EXPECT_EQ(peak_bytes(kernel(), foo), 128);
//   }                                        // leaks and findings would fail the test here
//
//   for_each_failing_allocation(kernel(), [&](std::uint64_t n) {
//     struct softc* sc = foo_attach();       // its nth request with M_NOWAIT fails
//     if (sc != nullptr) foo_detach(sc);
//   });
//
// Units:         bytes.
// Errors:        failures of the test.
// Thread safety: as GoogleTest's.
// Source:        src/README.md.
#pragma once

#include <cstdint>
#include <dtmalloc/testing/kernel_test.hpp>
#include <functional>
#include <string>

namespace dtmalloc {

// A machine with a ledger. What it finds fails the test, as leaks do.
class LedgerTest : public KernelTest {
 public:
  LedgerTest();
  // With the ledger's default bounds if the configuration has none.
  explicit LedgerTest(KernelConfig config);
  Ledger& ledger() { return *kernel().ledger(); }
  // Findings are no failure (by default they are).
  void allow_findings() { findings_allowed_ = true; }

 protected:
  void TearDown() override;

 private:
  bool findings_allowed_ = false;
};

// What the calling thread does while it lives is done there; nests.
class CallSite {
 public:
  CallSite(Kernel& kernel, std::string site);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

 private:
  SimThread& thread_;
};

// The failure's message has a line for each type, and with a ledger one for each site and request.
::testing::AssertionResult no_leaks(const Kernel& kernel);
// The failure's message is what the report `findings` prints. Requires: a ledger.
::testing::AssertionResult no_findings(const Kernel& kernel);
// The most that a type ever held at once. Requires: a ledger.
std::int64_t peak_bytes(const Kernel& kernel, const malloc_type& type);
std::int64_t peak_blocks(const Kernel& kernel, const malloc_type& type);

struct SweepOptions {
  std::string type = {};        // only requests under it: symbol or short description
  std::string site = {};        // only requests below this call site
  std::uint64_t limit = 10000;  // a body that never succeeds ends here, with a failure
};
// Calls `body` with the nth request that may not wait failing, for n = 1, 2, ... until none fails.
// Each time the types must hold as much after it as before, and the ledger, if there is one, must
// have found nothing. How many requests were made to fail.
std::uint64_t for_each_failing_allocation(Kernel& kernel,
                                          const std::function<void(std::uint64_t n)>& body,
                                          const SweepOptions& options = {});

}  // namespace dtmalloc
