// SPDX-License-Identifier: BSD-2-Clause
// The recorder of firings.

#include <dtmalloc/testing/kernel_test.hpp>
#include <dtmalloc/testing/probe_log.hpp>
#include <sstream>

namespace dtmalloc {
namespace {

class ProbeLogTest : public KernelTest {
 protected:
  ProbeLogTest()
      : foo_(kernel().define_type("M_FOO", "foo bar")),
        other_(kernel().define_type("M_OTHER", "other")),
        framework_(kernel().cpus(), kernel().addresses()) {
    load_dtmalloc(framework_, kernel());
    framework_.open();
  }
  malloc_type& foo_;
  malloc_type& other_;
  dtrace::Framework framework_;
};

TEST_F(ProbeLogTest, RecordsEveryFiringInOrder) {
  ProbeLog log(framework_);
  void* p = kernel().malloc(100, &foo_, M_WAITOK);
  void* q = kernel().malloc(70000, &other_, M_WAITOK);
  kernel().free(p, &foo_);
  kernel().free(q, &other_);
  const std::vector<Firing> expected{{&foo_, Firing::malloc, 128, 3},
                                     {&other_, Firing::malloc, 73728, -1},
                                     {&foo_, Firing::free, 128, 0},
                                     {&other_, Firing::free, 73728, 0}};
  EXPECT_EQ(log.firings(), expected);
  EXPECT_EQ(log.take(), expected);
  EXPECT_EQ(log.take(), std::vector<Firing>{});
}

TEST_F(ProbeLogTest, RecordsOneType_WhenAskedForIt) {
  ProbeLog log(framework_, "foo_bar");
  kernel().free(kernel().malloc(1, &other_, M_WAITOK), &other_);
  kernel().free(kernel().malloc(1, &foo_, M_WAITOK), &foo_);
  EXPECT_EQ(log.take(),
            (std::vector<Firing>{{&foo_, Firing::malloc, 16, 0}, {&foo_, Firing::free, 16, 0}}));
}

TEST_F(ProbeLogTest, DisablesWhatItEnabled) {
  {
    const ProbeLog log(framework_);
    EXPECT_EQ(framework_.enabled_probes(), framework_.probes().size());
  }
  EXPECT_EQ(framework_.enabled_probes(), 0u);
}

TEST_F(ProbeLogTest, PrintsAFiring) {
  std::ostringstream out;
  out << Firing{&foo_, Firing::malloc, 128, 3} << ' ' << Firing{&foo_, Firing::free, 128, 0};
  EXPECT_EQ(out.str(), "foo bar:malloc(128, 3) foo bar:free(128, 0)");
}

}  // namespace
}  // namespace dtmalloc
