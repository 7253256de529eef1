// SPDX-License-Identifier: BSD-2-Clause
// Real threads on the allocator and its CPUs: what ThreadSanitizer and the walkers must accept.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <dtmalloc/kernel.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "smp/membarrier.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 4000;

struct Firings {
  std::array<std::uint64_t, MAXCPU> per_cpu{};  // each CPU's owner writes its own
  std::atomic<bool> seen{false};                // something has fired
  std::atomic<bool> dead{false};                // nothing may fire any more
};
std::atomic<Firings*> firings{nullptr};
std::atomic<int> late{0};  // firings after the disabling

void count_firing(std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                  std::uintptr_t) {
  Firings* now = firings.load(std::memory_order_relaxed);
  if (now == nullptr || now->dead.load(std::memory_order_relaxed)) {
    late.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  ++now->per_cpu[static_cast<std::size_t>(curcpu->id)];
  now->seen.store(true, std::memory_order_relaxed);
}

std::uint32_t next(std::uint32_t& state) { return state = state * 1664525u + 1013904223u; }

void set_probes(malloc_type& type, std::uint32_t malloc_id, std::uint32_t free_id) {
  __atomic_store_n(&type.ks_mti.mti_probes[0], malloc_id, __ATOMIC_RELEASE);
  __atomic_store_n(&type.ks_mti.mti_probes[1], free_id, __ATOMIC_RELEASE);
}

// REQ: SMP-01, SMP-02. Blocks travel between CPUs; the books balance; nothing is handed out twice.
TEST(SmpStress, BooksBalance_WhenThreadsExchangeBlocks) {
  KernelConfig config;
  config.cpus = kThreads;
  Kernel kernel(config);
  malloc_type& type = kernel.define_type("M_STRESS", "stress");
  std::array<std::atomic<void*>, 64> shelf{};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      kernel.cpus().bind(t);
      std::uint32_t random = static_cast<std::uint32_t>(t) * 7919u + 1u;
      for (int i = 0; i < kRounds; ++i) {
        const std::size_t size = next(random) >> 16 & 1023;
        void* block = kernel.malloc(size, &type, M_NOWAIT);
        ASSERT_NE(block, nullptr);
        *static_cast<std::uint64_t*>(block) = reinterpret_cast<std::uintptr_t>(block);
        block = shelf[next(random) >> 20 & 63].exchange(block, std::memory_order_acq_rel);
        if (block == nullptr) continue;
        ASSERT_EQ(*static_cast<std::uint64_t*>(block), reinterpret_cast<std::uintptr_t>(block));
        *static_cast<std::uint64_t*>(block) = 0;
        kernel.free(block, &type);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::atomic<void*>& slot : shelf) kernel.free(slot.load(), &type);
  const TypeStats stats = kernel.type_stats(type);
  EXPECT_EQ(stats.numallocs, std::uint64_t{kThreads} * kRounds);
  EXPECT_EQ(stats.numfrees, stats.numallocs);
  EXPECT_EQ(stats.memalloced, stats.memfreed);
  EXPECT_EQ(check_vm(kernel.vm()), "");
}

// REQ: SMP-03. After disabling no CPU is inside the old hook, so what it reads may go.
TEST(SmpStress, HookIsQuiet_AfterDisabling) {
  KernelConfig config;
  config.cpus = kThreads + 1;
  Kernel kernel(config);
  malloc_type& type = kernel.define_type("M_STRESS", "stress");
  kernel.cpus().bind(kThreads);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      kernel.cpus().bind(t);
      while (!done.load(std::memory_order_relaxed)) {
        void* block = kernel.malloc(64, &type, M_NOWAIT);
        kernel.free(block, &type);
      }
    });
  late = 0;
  for (int round = 0; round < 20; ++round) {
    auto state = std::make_unique<Firings>();
    firings.store(state.get(), std::memory_order_release);
    kernel.set_malloc_probe(count_firing);
    kernel.set_malloc_probes_enabled(true);
    set_probes(type, 1, 2);
    while (!state->seen.load(std::memory_order_relaxed)) std::this_thread::yield();
    set_probes(type, 0, 0);
    kernel.set_malloc_probes_enabled(false);
    kernel.cpus().synchronize();
    state->dead.store(true, std::memory_order_relaxed);
    std::uint64_t fired = 0;
    for (const std::uint64_t count : state->per_cpu) fired += count;
    for (int i = 0; i < 2; ++i) std::this_thread::yield();  // the owners go on
    std::uint64_t still = 0;
    for (const std::uint64_t count : state->per_cpu) still += count;
    EXPECT_GT(fired, 0u);
    EXPECT_EQ(still, fired);
    firings.store(nullptr, std::memory_order_relaxed);
  }
  done.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(late.load(), 0);
  EXPECT_EQ(check_vm(kernel.vm()), "");
}

// REQ: SMP-19. A section of the owner's own around the allocator: whoever stops the CPU waits for
// its end, and the allocator does not wait for him.
TEST(SmpStress, AllocatorGoesOnInASection_WhileAnotherThreadStopsTheCpu) {
  KernelConfig config;
  config.cpus = 2;
  config.mode = RunMode::parallel;
  Kernel kernel(config);
  malloc_type& type = kernel.define_type("M_STRESS", "stress");
  kernel.cpus().bind(1);
  std::atomic<bool> done{false};
  std::atomic<int> rounds{0};
  std::thread owner([&] {
    kernel.cpus().bind(0);
    while (!done.load(std::memory_order_relaxed)) {
      const CriticalSection section;
      kernel.free(kernel.malloc(16, &type, M_NOWAIT), &type);
      rounds.fetch_add(1, std::memory_order_relaxed);
    }
  });
  while (rounds.load() == 0) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) kernel.cpus().run_on_cpu(kernel.cpus().cpu(0), [] {});
  done.store(true, std::memory_order_relaxed);
  owner.join();
  EXPECT_EQ(kernel.type_stats(type).numallocs, static_cast<std::uint64_t>(rounds.load()));
}

// REQ: SMP-02. A function on another CPU excludes that CPU's owner.
TEST(SmpStress, RunOnCpuExcludesTheOwner) {
  for (const bool fallback : {false, true}) {
    heavy_barrier_without_membarrier(fallback);
    CpuSet cpus({.count = 3});
    std::array<std::uint64_t, 2> plain{};
    std::atomic<bool> done{false};
    std::vector<std::thread> owners;
    for (int id = 0; id < 2; ++id)
      owners.emplace_back([&, id] {
        cpus.bind(id);
        while (!done.load(std::memory_order_relaxed)) {
          const CriticalSection section;
          ++plain[static_cast<std::size_t>(id)];
        }
      });
    cpus.bind(2);
    for (int i = 0; i < 500; ++i)
      for (int id = 0; id < 2; ++id)
        cpus.run_on_cpu(cpus.cpu(id), [&] {
          const std::uint64_t before = plain[static_cast<std::size_t>(id)];
          plain[static_cast<std::size_t>(id)] = before + 1;
        });
    done.store(true, std::memory_order_relaxed);
    for (std::thread& owner : owners) owner.join();
    EXPECT_GE(plain[0], 500u);
    EXPECT_GE(plain[1], 500u);
  }
  heavy_barrier_without_membarrier(false);
}

// REQ: SMP-04. Threads that own no CPU are given one each, beyond those of boot.
TEST(SmpStress, UnboundThreadsGetCpusOfTheirOwn) {
  KernelConfig config;
  config.cpus = 1;
  Kernel kernel(config);
  malloc_type& type = kernel.define_type("M_STRESS", "stress");
  std::mutex mutex;
  std::vector<int> ids;
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      kernel.free(kernel.malloc(100, &type, M_WAITOK), &type);
      {
        const std::lock_guard lock(mutex);
        ids.push_back(curcpu->id);
      }
      arrived.fetch_add(1);
      while (arrived.load() < 8) std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(kernel.type_stats(type).numallocs, 8u);
}

// REQ: SMP-05. Kernels share nothing: ten of them in ten threads.
TEST(SmpStress, KernelsAreValues) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t)
    threads.emplace_back([] {
      for (int round = 0; round < 3; ++round) {
        KernelConfig config;
        config.cpus = 2;
        config.mem = 64 << 20;
        Kernel kernel(config);
        malloc_type& type = kernel.define_type("M_T", "t");
        std::vector<void*> blocks;
        for (std::size_t i = 0; i < 300; ++i)
          blocks.push_back(kernel.malloc(i * 10, &type, M_NOWAIT));
        for (void* block : blocks) kernel.free(block, &type);
        EXPECT_TRUE(kernel.leaks().empty());
        EXPECT_EQ(check_vm(kernel.vm()), "");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// REQ: SMP-06. Parallel mode: a sleeper for pages wakes when another thread gives some back.
TEST(SmpStress, SleeperWakes_WhenAnotherThreadFreesPages) {
  KernelConfig config;
  config.cpus = 2;
  config.mem = 4 << 20;
  config.mode = RunMode::parallel;
  Kernel kernel(config);
  malloc_type& type = kernel.define_type("M_T", "t");
  kernel.cpus().bind(0);
  std::vector<void*> blocks;
  while (void* block = kernel.malloc(70000, &type, M_NOWAIT)) blocks.push_back(block);
  std::atomic<bool> got{false};
  std::thread sleeper([&] {
    kernel.cpus().bind(1);
    void* block = kernel.malloc(70000, &type, M_WAITOK);
    got.store(block != nullptr);
    kernel.free(block, &type);
  });
  while (kernel.vm().page_waiters.load() == 0) std::this_thread::yield();
  EXPECT_FALSE(got.load());
  for (void* block : blocks) kernel.free(block, &type);
  sleeper.join();
  EXPECT_TRUE(got.load());
  EXPECT_EQ(kernel.free_pages(), kernel.total_pages());
}

}  // namespace
}  // namespace dtmalloc
