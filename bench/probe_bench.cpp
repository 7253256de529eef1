// SPDX-License-Identifier: BSD-2-Clause
// What a firing costs: pairs of 64 bytes whose malloc and free fire into callbacks and D clauses.
//
// Contenders: `probe` (the pair with what the row names), `plain` (the same pair on a machine on
// which nothing is enabled), `absent` (no hooks compiled in). `firing`: what one firing adds to the
// plain pair. The rows `lttng` and `usdt` put an event of another tracer into a function that is
// called twice a pair; there `plain` calls the same function without the event.
#include <dlfcn.h>

#include <iostream>
#include <memory>
#include <string>

#include "machine.hpp"
#include "workloads.hpp"

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#endif

namespace dtmalloc::bench {
namespace {

using dtrace::ProbeDescription;

constexpr std::size_t kSize = 64;
constexpr char kLabel[] = "probe, ns a pair";
constexpr std::uint64_t kSwitchRate = 100000;  // ns between the consumer's passes

void empty_callback(const dtrace::ProbeFiring&, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                    std::uintptr_t, std::uintptr_t) {}

ContestOptions options(double firings) {
  ContestOptions options;
  options.subject = "probe";
  options.base = "plain";
  options.firings = firings;
  options.seconds = 200e-6;
  return options;
}

// The pairs of a machine, and what happens after a repetition, when its CPU is still the thread's.
Contender pairs_of(
    const std::string& name, Machine& machine, KernelCalls calls,
    const std::function<void()>& after = [] {}) {
  return {name, [calls, &machine](std::size_t n) { tight_pairs(calls, kSize, &machine.type, n); },
          [&machine] { machine.enter(); },
          [&machine, after] {
            after();
            machine.leave();
          }};
}

void against_plain(
    benchmark::State& state, Machine& traced, double firings, std::size_t most = 1u << 20,
    const std::function<void()>& after = [] {}) {
  Machine plain;
  ContestOptions how = options(firings);
  how.most = most;
  traced.leave();
  contest(
      state, kLabel,
      {pairs_of("probe", traced, kernel_calls(), after), pairs_of("plain", plain, kernel_calls()),
       pairs_of("absent", plain, kernel_calls_without_hooks())},
      how);
  traced.enter();
}

void callback(benchmark::State& state, const ProbeDescription& description, double firings) {
  Machine machine;
  machine.enter();
  {
    Tracing tracing(machine.kernel);
    tracing.enable(description, empty_callback);
    against_plain(state, machine, firings);
  }
  machine.leave();
}

struct Program {
  const char* name;
  const char* text;
  double firings = 2;
  bool records = false;     // the consumer works between repetitions, so that no buffer fills
  bool real_clock = false;  // the host's clock, not the machine's own
};

void program(benchmark::State& state, const Program& what) {
  KernelConfig config = config_of(1);
  config.real_clock = what.real_clock;
  Machine machine(config);
  machine.enter();
  {
    Tracing tracing(machine.kernel);
    tracing.start(what.text, "switchrate=" + std::to_string(kSwitchRate) + "ns");
    dtrace::Session& session = *tracing.session;
    Clock& clock = machine.kernel.cpus().clock();
    against_plain(state, machine, what.firings, what.records ? 2000 : 1u << 20, [&] {
      if (!what.records) return;
      if (!clock.is_real()) clock.advance(kSwitchRate);  // the pass falls due
      session.work();
    });
    session.stop();
    if (session.had_errors()) state.SkipWithError("there were drops or errors");
  }
  machine.leave();
}

#define BOTH "dtmalloc::bench_type:malloc, dtmalloc::bench_type:free "
constexpr Program kPrograms[] = {
    {"count", BOTH "{@ = count();}"},
    {"count_of_malloc", "dtmalloc::bench_type:malloc {@ = count();}", 1},
    {"count_by_probefunc", BOTH "{@[probefunc] = count();}"},
    {"count_by_pointer", BOTH "{@[args[0]] = count();}"},
    {"count_by_shortdesc", BOTH "{@[stringof args[0]->ks_shortdesc] = count();}"},
    {"count_by_tid", BOTH "{@[tid] = count();}"},
    {"quantize", BOTH "{@ = quantize(arg3);}"},
    {"predicate_count", BOTH "/arg3 > 16 && arg3 < 4096/ {@ = count();}"},
    {"predicate_false", BOTH "/arg3 > 4096/ {@ = count();}"},
    {"global_predicate", "BEGIN {x = 0;} " BOTH "/x == 0/ {@ = count();}"},
    {"thread_predicate", "BEGIN {self->n = 1;} " BOTH "/self->n == 0/ {@ = count();}"},
    {"record_1", BOTH "{trace(arg3);}", 2, true},
    {"record_2", BOTH "{trace(arg3); trace(arg4);}", 2, true},
    {"record_2_clock", BOTH "{trace(arg3); trace(arg4);}", 2, true, true},
    {"printf_4", BOTH "{printf(\"%d %d %d %d\\n\", arg3, tid, pid, id);}", 2, true},
    {"global_store", BOTH "{size = arg3;}"},
    {"thread_store", BOTH "{self->size = arg3;}"},
    {"thread_store_and_load", BOTH "{self->size = arg3; self->size;}"},
    {"array_count", BOTH "{x[tid]++;}"},
    {"array_count_by_text", BOTH "{x[probefunc]++;}"},
};

// Functions of another tracer: called twice a pair with the arguments of a firing.
using Traced = void (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);

struct CalledPairs {
  Traced function;
  KernelCalls calls;
  malloc_type* type;
  void run(std::size_t pairs) const {
    const auto fire = [this](void* block) {
      function(reinterpret_cast<std::uint64_t>(type), reinterpret_cast<std::uint64_t>(block), 3,
               kSize, 4);
    };
    for (std::size_t i = 0; i < pairs; ++i) {
      void* block = calls.allocate(kSize, type);
      touch(block, i);
      fire(block);
      calls.release(block, type);
      fire(block);
    }
  }
};

void other_tracer(benchmark::State& state, Traced traced, Traced bare) {
  Machine machine;
  const auto contender = [&](const char* name, Traced function) -> Contender {
    const CalledPairs pairs{opaque(function), kernel_calls(), &machine.type};
    return {name, [pairs](std::size_t n) { pairs.run(n); }, [&machine] { machine.enter(); },
            [&machine] { machine.leave(); }};
  };
  contest(state, kLabel, {contender("probe", traced), contender("plain", bare)}, options(2));
}

std::uint64_t calls_seen;
#define DTM_TRACED(name, event)                                                          \
  __attribute__((noinline)) void name(std::uint64_t a, std::uint64_t b, std::uint64_t c, \
                                      std::uint64_t d, std::uint64_t e) {                \
    ++calls_seen;                                                                        \
    event;                                                                               \
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e));                       \
  }
#ifdef DTRACE_PROBE5
DTM_TRACED(with_usdt, DTRACE_PROBE5(dtmalloc_bench, event, a, b, c, d, e))
DTM_TRACED(without_usdt, (void)0)
#endif

#ifdef DTM_BENCH_MODULES
// The module that holds the LTTng tracepoint lies beside this program. Opening it starts LTTng's
// threads, so it happens only for its row, which comes last.
void lttng(benchmark::State& state) {
  const std::string module = std::string(DTM_BENCH_MODULES) + "/lttng_event.so";
  void* handle = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    std::cerr << "bench: without LTTng-UST: " << why << '\n';
    return state.SkipWithError(why);
  }
  const auto find = [&](const char* name) { return reinterpret_cast<Traced>(dlsym(handle, name)); };
  const auto enabled = reinterpret_cast<int (*)()>(dlsym(handle, "lttng_event_enabled"));
  other_tracer(state, find("with_lttng_event"), find("without_lttng_event"));
  state.counters["recording"] = enabled();
}
#endif

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  const auto add_callback = [](const char* name, const char* function, const char* probe,
                               double firings) {
    row(std::string("callback/") + name, [=](benchmark::State& state) {
      callback(state, {"dtmalloc", "", function, probe, 0}, firings);
    });
  };
  add_callback("other_type", "other", "", 2);
  add_callback("malloc", "bench_type", "malloc", 1);
  add_callback("malloc_and_free", "bench_type", "", 2);
  for (const Program& what : kPrograms)
    row(std::string("program/") + what.name,
        [&what](benchmark::State& state) { program(state, what); });
#ifdef DTRACE_PROBE5
  row("usdt", [](benchmark::State& state) { other_tracer(state, with_usdt, without_usdt); });
#else
  std::cerr << "bench: without USDT: no <sys/sdt.h>\n";
#endif
#ifdef DTM_BENCH_MODULES
  row("lttng", lttng);
#else
  std::cerr << "bench: without LTTng-UST: not found when this was configured\n";
#endif
}
