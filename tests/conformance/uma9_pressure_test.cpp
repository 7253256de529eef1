// SPDX-License-Identifier: BSD-2-Clause
// Memory pressure: the soft limit, vm_lowmem, the page daemon, sleeping for pages, deadlock
// (spec/malloc9.md 5.6, 5.10, 5.11a).
#include <gtest/gtest.h>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t keg_pages(Machine& m) {
  std::uint64_t sum = 0;
  for (const ZoneStats& zone : m.kernel.zones()) sum += zone.keg_pages;
  return sum;
}

// REQ: UMA9-40. The total before the addition decides; nothing is refused; the worker calls the
// handlers with VM_LOW_KMEM and drains everything, at most once a second.
TEST(Uma9Pressure, SoftLimitWakesTheWorker) {
  Machine m;
  Vm& vm = m.kernel.vm();
  EXPECT_EQ(uma_limit(vm), std::uint64_t{1} << 30);
  std::vector<std::uint64_t> calls;
  const LowmemHandler handler(vm, [&](int flags) {
    EXPECT_EQ(flags, VM_LOW_KMEM);
    calls.push_back(m.kernel.cpus().clock().now());
  });
  Clock& clock = m.kernel.cpus().clock();
  m.kernel.free(m.kernel.malloc(16, &m.type, M_WAITOK), &m.type);
  uma_set_limit(vm, uma_size(vm));
  EXPECT_EQ(uma_avail(vm), 0);
  void* p = m.kernel.malloc(65537, &m.type, M_NOWAIT);  // the limit itself is not exceeded
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(clock.next_one_shot(), ~std::uint64_t{0});
  void* q = m.kernel.malloc(65537, &m.type, M_NOWAIT);
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(clock.next_one_shot(), 0u);
  clock.run_due();
  EXPECT_EQ(calls, (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(m.zone("malloc-16").keg_pages, 0u);
  m.kernel.malloc(65537, &m.type, M_NOWAIT);
  clock.advance(kSecond - 1);
  EXPECT_EQ(calls.size(), 1u);
  clock.advance(1);
  EXPECT_EQ(calls, (std::vector<std::uint64_t>{0, kSecond}));
  // Buckets that are given back may want pages for buckets of their own: it ends all the same.
  clock.advance(60 * kSecond);
  EXPECT_EQ(clock.next_one_shot(), ~std::uint64_t{0});
  for (std::size_t i = 1; i < calls.size(); ++i) EXPECT_GE(calls[i] - calls[i - 1], kSecond);
  uma_set_limit(vm, 1 << 30);
  EXPECT_EQ(uma_avail(vm), (1 << 30) - static_cast<long>(uma_size(vm)));
  uma_set_limit(vm, 0);
  EXPECT_EQ(uma_avail(vm), -static_cast<long>(uma_size(vm)));
}

// REQ: UMA9-41. Below the wake-up threshold the page daemon calls the handlers and trims, at most
// once in 10 s; above it nothing happens.
TEST(Uma9Pressure, PageDaemonCallsHandlersInOrder) {
  Machine m(small_config(1, 64 << 20));
  Vm& vm = m.kernel.vm();
  Clock& clock = m.kernel.cpus().clock();
  const PageThresholds thresholds = PageThresholds::of(16384);
  std::string order;
  const LowmemHandler first(vm, [&](int flags) { order += "a" + std::to_string(flags); });
  auto second =
      std::make_unique<LowmemHandler>(vm, [&](int flags) { order += "b" + std::to_string(flags); });
  while (m.kernel.free_pages() > thresholds.wakeup())
    m.kernel.contigmalloc(4096, &m.type, M_NOWAIT);
  clock.advance(1);
  EXPECT_EQ(order, "");
  m.kernel.contigmalloc(4096, &m.type, M_NOWAIT);
  clock.advance(1);
  EXPECT_EQ(order, "a2b2");
  second.reset();
  m.kernel.contigmalloc(4096, &m.type, M_NOWAIT);
  clock.advance(9 * kSecond);
  EXPECT_EQ(order, "a2b2");
  clock.advance(kSecond);
  EXPECT_EQ(order, "a2b2a2");
}

// REQ: UMA9-41. Pages that are severely short wake the worker too.
TEST(Uma9Pressure, SevereShortageDrainsTheCpus) {
  Machine m(small_config(1, 64 << 20));
  m.kernel.free(m.kernel.malloc(16, &m.type, M_WAITOK), &m.type);
  m.exhaust(PageThresholds::of(16384).free_severe - 1);
  m.kernel.cpus().clock().advance(1);
  EXPECT_EQ(m.zone("malloc-16").keg_pages, 0u);
}

// REQ: UMA9-42. M_WAITOK waits until another thread's pages come back.
TEST(Uma9Pressure, SleepersWakeWhenPagesComeBack) {
  Machine m(small_config(2, 8 << 20));
  malloc_type& hog = m.kernel.define_type("M_HOG2", "hog2");
  std::vector<void*> blocks;
  while (void* block = m.kernel.malloc(70000, &hog, M_NOWAIT)) blocks.push_back(block);
  void* got = nullptr;
  m.kernel.cpus().spawn({}, 1, [&] { got = m.kernel.malloc(80000, &m.type, M_WAITOK); });
  m.kernel.cpus().spawn({}, 0, [&] {
    m.kernel.cpus().sleep_until(5 * kSecond);
    for (int i = 0; i < 12; ++i) {
      m.kernel.free(blocks.back(), &hog);
      blocks.pop_back();
    }
  });
  m.kernel.cpus().join_all();
  EXPECT_NE(got, nullptr);
}

// REQ: UMA9-42. What lies in the caches of other zones and CPUs helps a sleeper.
TEST(Uma9Pressure, SleepersGetWhatCachesHold) {
  Machine m(small_config(2, 8 << 20));
  m.kernel.cpus().bind(1);
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(m.kernel.malloc(2048, &m.type, M_WAITOK));
  for (void* block : blocks) m.kernel.free(block, &m.type);
  m.kernel.cpus().bind(0);
  m.exhaust();
  const std::uint64_t cached = m.zone("malloc-2048").keg_pages;
  ASSERT_GT(cached, 400u);
  EXPECT_NE(m.kernel.malloc(65536, &m.type, M_WAITOK), nullptr);
  EXPECT_LT(m.zone("malloc-2048").keg_pages, cached);
}

// REQ: UMA9-42. A handler that frees helps too.
TEST(Uma9Pressure, HandlersHelpSleepers) {
  Machine m(small_config(1, 8 << 20));
  std::vector<void*> blocks;
  while (void* block = m.kernel.malloc(70000, &m.type, M_NOWAIT)) blocks.push_back(block);
  const LowmemHandler handler(m.kernel.vm(), [&](int) {
    if (blocks.empty()) return;
    m.kernel.free(blocks.back(), &m.type);
    blocks.pop_back();
  });
  EXPECT_NE(m.kernel.malloc(70000, &m.type, M_WAITOK), nullptr);
}

// REQ: UMA9-41. A handler that would sleep is refused.
TEST(Uma9Pressure, HandlersMustNotSleep) {
  Machine m(small_config(1, 8 << 20));
  while (m.kernel.malloc(70000, &m.type, M_NOWAIT) != nullptr) {
  }
  const LowmemHandler handler(m.kernel.vm(),
                              [&](int) { m.kernel.malloc(70000, &m.type, M_WAITOK); });
  EXPECT_EQ(panic_of([&] { m.kernel.malloc(70000, &m.type, M_WAITOK); }),
            "not modelled: a handler of vm_lowmem sleeps");
}

// REQ: UMA9-43. All asleep, and a full reclaim freed nothing: a panic that names each of them.
TEST(Uma9Pressure, DeadlockNamesEverySleeper) {
  Machine m(small_config(2, 2 << 20));
  const std::string text = panic_of([&] {
    for (const int cpu : {0, 1}) {
      SimThread thread;
      thread.execname = cpu == 0 ? "one" : "two";
      m.kernel.cpus().spawn(thread, cpu, [&m, cpu] {
        while (true) m.kernel.malloc(cpu == 0 ? 65536 : 16, &m.type, M_WAITOK);
      });
    }
    m.kernel.cpus().join_all();
  });
  EXPECT_EQ(text.rfind("deadlock: ", 0), 0u) << text;
  EXPECT_NE(text.find("one (tid "), std::string::npos) << text;
  EXPECT_NE(text.find("malloc 65536 M_T M_WAITOK waits for free pages"), std::string::npos) << text;
  EXPECT_NE(text.find("malloc 16 M_T M_WAITOK waits for free pages"), std::string::npos) << text;
}

// REQ: UMA9-43. Nothing that could be had was left: the caches are empty, the pages used.
TEST(Uma9Pressure, DeadlockComesAfterAFullReclaim) {
  Machine m(small_config(1, 4 << 20));
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(m.kernel.malloc(2048, &m.type, M_WAITOK));
  for (void* block : blocks) m.kernel.free(block, &m.type);
  const std::string text = panic_of([&] {
    while (true) m.kernel.malloc(4096, &m.type, M_WAITOK);
  });
  EXPECT_NE(text.find("malloc 4096 M_T M_WAITOK"), std::string::npos) << text;
  EXPECT_EQ(m.zone("malloc-2048").keg_pages, 0u);
  EXPECT_LE(m.kernel.free_pages(), 3u);
  EXPECT_EQ(keg_pages(m) + m.kernel.free_pages(), m.kernel.total_pages());
}

// REQ: UMA9-14. A free count that crosses the minimum is seen at the timer's next look.
TEST(Uma9Pressure, TimerLooksAtBucketdisable) {
  Machine m(small_config(1, 8 << 20));
  Vm& vm = m.kernel.vm();
  std::vector<void*> blocks;
  const PageThresholds thresholds = PageThresholds::of(2048);
  while (m.kernel.free_pages() >= thresholds.free_min)
    blocks.push_back(m.kernel.contigmalloc(4096, &m.type, M_NOWAIT));
  EXPECT_FALSE(vm.bucketdisable.load());
  m.kernel.cpus().clock().advance(20 * kSecond);
  EXPECT_TRUE(vm.bucketdisable.load());
  for (void* block : blocks) m.kernel.free(block, &m.type);
  EXPECT_TRUE(vm.bucketdisable.load());
  m.kernel.cpus().clock().advance(20 * kSecond);
  EXPECT_FALSE(vm.bucketdisable.load());
}

// REQ: UMA9-44. The nodes that reclaim, and those of the limit.
TEST(Uma9Pressure, SysctlNodes) {
  Machine m;
  SysctlTree& tree = m.kernel.sysctl();
  EXPECT_EQ(tree.find("vm.uma_kmem_limit")->read(), std::to_string(1 << 30));
  m.kernel.free(m.kernel.malloc(16, &m.type, M_WAITOK), &m.type);
  EXPECT_EQ(tree.find("vm.uma_kmem_total")->read(), std::to_string(m.kernel.uma_kmem_total()));
  EXPECT_EQ(tree.find("debug.uma_reclaim")->write("4"), EINVAL);
  EXPECT_EQ(tree.find("debug.uma_reclaim")->write("x"), EINVAL);
  EXPECT_EQ(tree.find("debug.uma_reclaim_domain")->write("17"), EINVAL);  // domain 1
  EXPECT_NE(m.zone("malloc-16").keg_pages, 0u);
  EXPECT_EQ(tree.find("debug.uma_reclaim")->write("2"), 0);
  EXPECT_EQ(m.zone("malloc-16").keg_pages, 0u);
  int told = 0;
  const LowmemHandler handler(m.kernel.vm(), [&](int flags) { told = flags; });
  EXPECT_EQ(tree.find("debug.vm_lowmem")->write("2"), 0);
  EXPECT_EQ(told, VM_LOW_PAGES);
  EXPECT_EQ(tree.find("debug.vm_lowmem")->write("4"), EINVAL);
}

}  // namespace
}  // namespace dtmalloc
