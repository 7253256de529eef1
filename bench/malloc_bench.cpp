// SPDX-License-Identifier: BSD-2-Clause
// A malloc/free pair of each class: hooks absent, present but disabled, enabled for another type,
// and enabled with an empty callback. `ratio` is the time over that of the pair without hooks,
// measured before and after in the same run; `plain_ns` is that time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <dtmalloc/kernel.hpp>

namespace dtmalloc {
namespace {

using Clock = std::chrono::steady_clock;

struct Pair {
  void* (*allocate)(std::size_t, malloc_type*, int);
  void (*release)(void*, malloc_type*);
};
constexpr Pair kPlain{kern_malloc_nohooks, kern_free_nohooks};
constexpr Pair kHooked{kern_malloc, kern_free};

enum class Hooks { absent, disabled, other, enabled };

void empty_callback(std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                    std::uintptr_t) {}

KernelConfig one_cpu() {
  KernelConfig config;
  config.cpus = 1;
  return config;
}

struct Machine {
  Kernel kernel{one_cpu()};
  malloc_type& type = kernel.define_type("M_BENCH", "bench");
  malloc_type& other = kernel.define_type("M_OTHER", "other");

  explicit Machine(Hooks hooks) {
    kernel.cpus().bind(0);
    if (hooks != Hooks::other && hooks != Hooks::enabled) return;
    kernel.set_malloc_probe(empty_callback);
    kernel.set_malloc_probes_enabled(true);
    malloc_type& traced = hooks == Hooks::enabled ? type : other;
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_MALLOC] = 1;
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_FREE] = 2;
  }
};

__attribute__((noinline)) double time_pairs(const Pair& pair, malloc_type& type, std::size_t size,
                                            int pairs) {
  const auto start = Clock::now();
  for (int i = 0; i < pairs; ++i) pair.release(pair.allocate(size, &type, kM_NOWAIT), &type);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / pairs;
}

// The best of several short measurements, so that a neighbour's burst does not count.
double plain_pair(malloc_type& type, std::size_t size) {
  double best = time_pairs(kPlain, type, size, 20000);
  for (int i = 0; i < 4; ++i) best = std::min(best, time_pairs(kPlain, type, size, 20000));
  return best;
}

void pair(benchmark::State& state, Hooks hooks) {
  Machine machine(hooks);
  const auto size = static_cast<std::size_t>(state.range(0));
  const Pair& used = hooks == Hooks::absent ? kPlain : kHooked;
  double plain = plain_pair(machine.type, size);
  double best = time_pairs(used, machine.type, size, 20000);
  for (auto _ : state) {
    void* block = used.allocate(size, &machine.type, kM_NOWAIT);
    benchmark::DoNotOptimize(block);
    used.release(block, &machine.type);
  }
  for (int i = 0; i < 4; ++i) {
    plain = std::min(plain, plain_pair(machine.type, size));
    best = std::min(best, time_pairs(used, machine.type, size, 20000));
  }
  state.counters["ratio"] = best / plain;
  state.counters["plain_ns"] = plain;
}

// Live blocks in random order: what a pair costs when its cache lines are not the last ones used.
struct Random {
  std::array<void*, 10000> live{};
  std::uint32_t state = 1;
  std::uint32_t next() { return state = state * 1664525u + 1013904223u; }
  void step(const Pair& pair, malloc_type& type) {
    void*& block = live[(next() >> 8) % live.size()];
    if (block != nullptr) pair.release(block, &type);
    block = pair.allocate(next() >> 22, &type, kM_NOWAIT);
  }
  double time(const Pair& pair, malloc_type& type) {
    constexpr int kSteps = 20000;
    const auto start = Clock::now();
    for (int i = 0; i < kSteps; ++i) step(pair, type);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kSteps;
  }
};

void random_sizes(benchmark::State& state, Hooks hooks) {
  Machine machine(hooks);
  const Pair& used = hooks == Hooks::absent ? kPlain : kHooked;
  Random random;
  for (int i = 0; i < 4; ++i) random.time(kPlain, machine.type);
  double plain = random.time(kPlain, machine.type);
  double best = random.time(used, machine.type);
  for (auto _ : state) random.step(used, machine.type);
  for (int i = 0; i < 8; ++i) {
    plain = std::min(plain, random.time(kPlain, machine.type));
    best = std::min(best, random.time(used, machine.type));
  }
  state.counters["ratio"] = best / plain;
  state.counters["plain_ns"] = plain;
}

void classes(benchmark::internal::Benchmark* bench) {
  for (const std::uint32_t size : KernelRelease::find(16)->classes) bench->Arg(size);
}

BENCHMARK_CAPTURE(pair, absent, Hooks::absent)->Apply(classes);
BENCHMARK_CAPTURE(pair, disabled, Hooks::disabled)->Apply(classes);
BENCHMARK_CAPTURE(pair, other_type_traced, Hooks::other)->Arg(64);
BENCHMARK_CAPTURE(pair, enabled_empty, Hooks::enabled)->Apply(classes);
BENCHMARK_CAPTURE(random_sizes, absent, Hooks::absent);
BENCHMARK_CAPTURE(random_sizes, disabled, Hooks::disabled);
BENCHMARK_CAPTURE(random_sizes, enabled_empty, Hooks::enabled);

}  // namespace
}  // namespace dtmalloc
