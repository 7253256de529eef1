// SPDX-License-Identifier: BSD-2-Clause
// Many types on many CPUs: what an operation costs, what memory the statistics take, what a report
// of all takes.
//
// One thread plays all CPUs, another one at each operation, as a replay does; blocks of random
// sizes up to 1 KiB and of random types are replaced. `many` is a machine with 10,000 types.
#include <unistd.h>

#include <dtmalloc/report/report.hpp>
#include <fstream>
#include <memory>
#include <string>

#include "machine.hpp"
#include "workloads.hpp"

namespace dtmalloc::bench {
namespace {

constexpr std::size_t kLive = 10000;
constexpr int kMany = 10000;

std::vector<malloc_type*> define_types(Kernel& kernel, int count) {
  std::vector<malloc_type*> types;
  for (int i = 0; i < count; ++i)
    types.push_back(&kernel.define_type("M_T" + std::to_string(i), "type " + std::to_string(i)));
  return types;
}

// A machine whose CPUs are all the calling thread's: nobody else runs, so a store moves it.
struct Played {
  Played(int cpus, int type_count)
      : machine(cpus), types(define_types(machine.kernel, type_count)), table(kLive, types) {
    for (int i = 0; i < cpus; ++i) all.push_back(&machine.kernel.cpus().cpu(i));
  }
  // Every type was allocated from every class on every CPU: the first time is a cold path.
  void use_all() {
    const KernelCalls calls = kernel_calls();
    machine.enter();
    Cpu* const home = curcpu;
    for (Cpu* cpu : all) {
      curcpu = cpu;
      for (malloc_type* type : types)
        for (const std::size_t size : machine.kernel.classes())
          if (size <= 1024) calls.release(calls.allocate(size, type), type);
    }
    curcpu = home;
    machine.leave();
  }
  void run(std::size_t operations) {
    const KernelCalls calls = kernel_calls();
    Cpu* const home = curcpu;
    table.fill(calls, UpTo1K());
    std::size_t next = 0;
    for (std::size_t i = 0; i < operations; ++i) {
      curcpu = all[next];
      if (++next == all.size()) next = 0;
      table.step<true>(calls, UpTo1K(), i);
    }
    curcpu = home;
  }
  Machine machine;
  std::vector<malloc_type*> types;
  RandomLive table;
  std::vector<Cpu*> all;
};

void operations(benchmark::State& state, int cpus) {
  std::vector<Contender> list;
  for (const int types : {1, 64, 1000, kMany}) {
    const auto played = std::make_shared<Played>(cpus, types);
    played->use_all();
    list.push_back({types == kMany ? "many" : "types:" + std::to_string(types),
                    [played](std::size_t count) { played->run(count); },
                    [played] { played->machine.enter(); }, [played] { played->machine.leave(); }});
  }
  ContestOptions options;
  options.seconds = 1.5e-3;
  options.settle = kLive * static_cast<std::size_t>(cpus + 9);
  options.warm = 10 * kLive;  // what the other contenders have pushed out of the caches comes back
  contest(state, "many, ns an operation", list, options);
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long size = 0, pages = 0;
  statm >> size >> pages;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Of a machine with 64 CPUs: what becomes resident when 4 of them use every type.
void resident(benchmark::State& state) {
  double bytes = 0;
  for (auto _ : state) {
    Machine machine(64);
    const std::vector<malloc_type*> types = define_types(machine.kernel, kMany);
    const KernelCalls calls = kernel_calls();
    for (int cpu = 0; cpu < 4; ++cpu) {  // the caches' own memory
      machine.kernel.cpus().bind(cpu);
      calls.release(calls.allocate(64, &machine.other), &machine.other);
    }
    const double before = resident_bytes();
    const double start = seconds_now();
    for (int cpu = 0; cpu < 4; ++cpu) {
      machine.kernel.cpus().bind(cpu);
      for (malloc_type* type : types) calls.release(calls.allocate(64, type), type);
    }
    state.SetIterationTime(seconds_now() - start);
    bytes = resident_bytes() - before;
    machine.leave();
  }
  report(state, "resident, MiB", bytes / (1 << 20));
}

void full_report(benchmark::State& state) {
  Machine machine(64);
  const std::vector<malloc_type*> types = define_types(machine.kernel, kMany);
  for (int cpu = 0; cpu < 4; ++cpu) {
    machine.kernel.cpus().bind(cpu);
    for (malloc_type* type : types) kern_free(kern_malloc(64, type, kM_NOWAIT), type);
  }
  stopwatch(state, "report, ms", 1e6, [&] {
    const double start = seconds_now();
    const report::Snapshot snapshot = report::take_snapshot(machine.kernel);
    const std::string text = report::print_vmstat_m(snapshot, snapshot.vmstat_format);
    benchmark::DoNotOptimize(text.data());
    return seconds_now() - start;
  });
  machine.leave();
}

void snapshot_only(benchmark::State& state) {
  Machine machine(64);
  const std::vector<malloc_type*> types = define_types(machine.kernel, kMany);
  machine.enter();
  stopwatch(state, "snapshot, ms", 1e6, [&] {
    const double start = seconds_now();
    const report::Snapshot snapshot = report::take_snapshot(machine.kernel);
    benchmark::DoNotOptimize(snapshot.types.data());
    return seconds_now() - start;
  });
  machine.leave();
}

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  for (const int cpus : {1, 4, 64})
    row("operations/cpus:" + std::to_string(cpus),
        [cpus](benchmark::State& state) { operations(state, cpus); });
  row("resident/10000 types/4 of 64 cpus", resident);
  row("vmstat-m/10000 types/64 cpus", full_report);
  row("snapshot/10000 types/64 cpus", snapshot_only);
}
