// SPDX-License-Identifier: BSD-2-Clause
// What probes cost: a malloc/free pair of 64 bytes, plain, and with the malloc probe of its type
// enabled in several ways. Each iteration is 2000 pairs; the counter `ratio` of each is its time
// over that of the plain pair of this run, `firing_ns` the time over the plain pair by firings.
#include <benchmark/benchmark.h>

#include <chrono>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace dtmalloc::dtrace {
namespace {

// A machine whose own thread is CPU 0, with one type to allocate and one to leave alone.
struct Machine {
  Machine() : kernel(config()) {
    kernel.cpus().bind(0);
    type = &kernel.define_type("M_BENCH", "bench type");
    other = &kernel.define_type("M_OTHER", "other");
    framework = std::make_unique<Framework>(kernel.cpus(), kernel.addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, kernel);
    framework->open();
  }
  ~Machine() {
    framework->close();
    framework = nullptr;
    kernel.cpus().unbind();
  }
  static KernelConfig config() {
    KernelConfig config;
    config.cpus = 1;
    config.fixed_cpus = true;
    config.mem = 1ull << 30;
    return config;
  }
  void pair() {
    void* block = kern_malloc(64, type, kM_WAITOK);
    benchmark::DoNotOptimize(block);
    kern_free(block, type);
  }

  Kernel kernel;
  malloc_type* type = nullptr;
  malloc_type* other = nullptr;
  std::unique_ptr<Framework> framework;
};

double seconds_of_pairs(Machine& machine, std::size_t pairs) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < pairs; ++i) machine.pair();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The plain pair beside which a case is put: the quickest of a few rounds, in the same machine.
double plain_pair() {
  static const double kSeconds = [] {
    Machine machine;
    constexpr std::size_t kPairs = 2000;
    double best = 1;
    for (int round = 0; round < 5000; ++round) {
      best = std::min(best, seconds_of_pairs(machine, kPairs) / kPairs);
    }
    return best;
  }();
  return kSeconds;
}

void measure(
    benchmark::State& state, Machine& machine, double firings,
    const std::function<void()>& between = [] {}) {
  const double plain = plain_pair();
  double best = 1;
  constexpr std::size_t kPairs = 2000;
  for (auto _ : state) {
    const double seconds = seconds_of_pairs(machine, kPairs);
    best = std::min(best, seconds / kPairs);
    state.SetIterationTime(seconds);
    between();
  }
  state.counters["ratio"] = best / plain;
  state.counters["pair_ns"] = best * 1e9;
  if (firings > 0) state.counters["firing_ns"] = (best - plain) * 1e9 / firings;
}

void empty(void*, ProbeId, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
           std::uintptr_t) {}

void plain(benchmark::State& state) {
  Machine machine;
  measure(state, machine, 0);
}

void callback(benchmark::State& state, ProbeDescription description, double firings) {
  Machine machine;
  auto enabling = machine.framework->enable(description, empty, nullptr);
  if (!enabling) return state.SkipWithError(enabling.error().message.c_str());
  measure(state, machine, firings);
  machine.framework->disable(*enabling);
}

void program(benchmark::State& state, const std::string& text, double firings) {
  Machine machine;
  Session session(*machine.framework, {[](std::string_view) {}, [](std::string_view) {}});
  ProgramSource source;
  source.text = text;
  auto compiled = session.compile(source);
  if (!compiled) return state.SkipWithError(compiled.error().message.c_str());
  if (!session.enable(*compiled) || !session.go()) return state.SkipWithError("does not start");
  measure(state, machine, firings, [&session] { session.work(); });
  session.stop();
}

#define DTM_BENCH(name, ...) \
  BENCHMARK_CAPTURE(name, __VA_ARGS__)->UseManualTime()->Unit(benchmark::kMicrosecond)

BENCHMARK(plain)->UseManualTime();
DTM_BENCH(callback, other_type, ProbeDescription{"dtmalloc", "", "other", "malloc", 0}, 0.0);
DTM_BENCH(callback, malloc, ProbeDescription{"dtmalloc", "", "bench_type", "malloc", 0}, 1.0);
DTM_BENCH(callback, malloc_and_free, ProbeDescription{"dtmalloc", "", "bench_type", "", 0}, 2.0);
// Of malloc and free, but for programs that say otherwise.
#define BOTH "dtmalloc::bench_type:malloc, dtmalloc::bench_type:free "
#define DTM_PROGRAM(name, text) DTM_BENCH(program, name, text, 2.0)
// With the consumer at work between the rounds, so that the buffer does not fill.
#define DTM_RECORDS(name, text) DTM_PROGRAM(name, text)->Iterations(300)
DTM_PROGRAM(count, BOTH "{@ = count();}");
DTM_BENCH(program, count_of_malloc, "dtmalloc::bench_type:malloc {@ = count();}", 1.0);
DTM_PROGRAM(count_by_probefunc, BOTH "{@[probefunc] = count();}");
DTM_PROGRAM(count_by_pointer, BOTH "{@[args[0]] = count();}");
DTM_PROGRAM(count_by_shortdesc, BOTH "{@[stringof args[0]->ks_shortdesc] = count();}");
DTM_PROGRAM(count_by_tid, BOTH "{@[tid] = count();}");
DTM_PROGRAM(quantize, BOTH "{@ = quantize(arg3);}");
DTM_PROGRAM(predicate_count, BOTH "/arg3 > 16 && arg3 < 4096/ {@ = count();}");
DTM_PROGRAM(global_predicate, "BEGIN {x = 0;} " BOTH "/x == 0/ {@ = count();}");
DTM_PROGRAM(thread_predicate, "BEGIN {self->n = 1;} " BOTH "/self->n == 0/ {@ = count();}");
DTM_RECORDS(record_1, BOTH "{trace(arg3);}");
DTM_RECORDS(record_4, BOTH "{printf(\"%d %d %d %d\\n\", arg3, tid, pid, id);}");
DTM_PROGRAM(global_store, BOTH "{size = arg3;}");
DTM_PROGRAM(thread_store, BOTH "{self->size = arg3;}");
DTM_PROGRAM(thread_store_and_load, BOTH "{self->size = arg3; self->size;}");
DTM_PROGRAM(array_count, BOTH "{x[tid]++;}");
DTM_PROGRAM(array_count_by_text, BOTH "{x[probefunc]++;}");

}  // namespace
}  // namespace dtmalloc::dtrace
