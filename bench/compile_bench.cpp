// SPDX-License-Identifier: BSD-2-Clause
// The D compiler, and the enabling of many probes.
//
// A number is for one clause, or one probe: it is flat when time grows with the number of them.
#include <memory>
#include <string>

#include "contest.hpp"
#include "machine.hpp"

namespace dtmalloc::bench {
namespace {

std::string program_of(int clauses) {
  std::string text;
  for (int i = 0; i < clauses; ++i) {
    const std::string n = std::to_string(i);
    text += "dtmalloc::bench_type:malloc /arg3 > " + n + " && self->x" + n + "/ {@a" + n +
            "[stringof args[0]->ks_shortdesc] = quantize(arg3); self->x" + n + " = timestamp;}\n";
  }
  return text;
}

dtrace::SessionSinks silent() {
  return {[](std::string_view) {}, [](std::string_view) {}};
}

void compile(benchmark::State& state, int clauses) {
  Machine machine;
  machine.enter();
  {
    Tracing tracing(machine.kernel);
    dtrace::ProgramSource source;
    source.text = program_of(clauses);
    stopwatch(state, "compile, us a clause", clauses * 1e3, [&] {
      dtrace::Session session(tracing.framework, silent());
      const double start = seconds_now();
      const auto program = session.compile(source);
      const double taken = seconds_now() - start;
      if (!program) {
        std::cerr << message_of(source, program.error());
        std::exit(1);
      }
      return taken;
    });
  }
  machine.leave();
}

void enable(benchmark::State& state, int probes, bool by_session) {
  Machine machine;
  machine.enter();
  {
    for (int i = 0; i < probes / 2; ++i)
      machine.kernel.define_type("M_MANY" + std::to_string(i), "many " + std::to_string(i));
    Tracing tracing(machine.kernel);
    dtrace::ProgramSource source;
    source.text = "dtmalloc::many_*: {@[probefunc] = count();}";
    stopwatch(state, "enable, us a probe", probes * 1e3, [&] {
      if (!by_session) {
        const double start = seconds_now();
        const auto enabling = tracing.framework.enable(
            {"dtmalloc", "", "many_*", "", 0},
            [](const dtrace::ProbeFiring&, std::uintptr_t, std::uintptr_t, std::uintptr_t,
               std::uintptr_t, std::uintptr_t) {},
            nullptr);
        const double taken = seconds_now() - start;
        if (!enabling) std::abort();
        tracing.framework.disable(*enabling);
        return taken;
      }
      dtrace::Session session(tracing.framework, silent());
      const auto program = session.compile(source);
      if (!program) std::abort();
      const double start = seconds_now();
      if (!session.enable(*program) || !session.go()) std::abort();
      const double taken = seconds_now() - start;
      session.stop();
      return taken;
    });
  }
  machine.leave();
}

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  for (const int clauses : {1, 100, 1000})
    row("compile/clauses:" + std::to_string(clauses),
        [clauses](benchmark::State& state) { compile(state, clauses); });
  for (const int probes : {100, 10000}) {
    row("enable clause/probes:" + std::to_string(probes),
        [probes](benchmark::State& state) { enable(state, probes, true); });
    row("enable callback/probes:" + std::to_string(probes),
        [probes](benchmark::State& state) { enable(state, probes, false); });
  }
}
