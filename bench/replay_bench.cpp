// SPDX-License-Identifier: BSD-2-Clause
// Replay of a trace of 1,000 types on 64 CPUs: binary, text, and the reading of text alone.
//
// Half of the operations are frees, of 50,000 blocks; each happens on a random CPU, and each type
// has a size. What is timed of a replay is the second half of the trace, when each CPU has seen
// each type. A number is for one operation, or for one byte of text. `newlines` is what finding the
// ends of the same lines takes.
#include <cstring>
#include <dtmalloc/workload/trace.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "machine.hpp"
#include "workloads.hpp"

namespace dtmalloc::bench {
namespace {

constexpr int kTypes = 1000, kCpus = 64, kOperations = 2000000;
constexpr std::size_t kLive = 50000;

std::string text_trace() {
  std::string text = "kernel cpus=64 mem=8G\n";
  for (int i = 0; i < kTypes; ++i)
    text += "type M_TYPE" + std::to_string(i) + " \"type " + std::to_string(i) + "\"\n";
  std::vector<bool> live(kLive);
  std::vector<std::size_t> sizes(kTypes);
  Random random(11);
  for (std::size_t& size : sizes) size = UpTo1K()(random.next());
  for (int i = 0; i < kOperations; ++i) {
    const std::uint64_t word = random.next();
    const std::size_t slot = (word >> 32) * kLive >> 32;
    const std::size_t type = (word >> 8 & 0xffff) * kTypes >> 16;
    const std::string name = "x[" + std::to_string(slot) + "]";
    if (live[slot])
      text += "free " + name;
    else
      text += name + " = malloc " + std::to_string(sizes[type]) + " M_TYPE" + std::to_string(type) +
              " M_NOWAIT";
    text += " cpu=" + std::to_string(word % kCpus) + "\n";
    live[slot] = !live[slot];
  }
  return text;
}

[[noreturn]] void give_up(const Diagnostic& diagnostic) {
  std::cerr << "bench: " << diagnostic.message << '\n';
  std::exit(1);
}
std::unique_ptr<workload::Trace> opened(const std::string& bytes) {
  auto trace = workload::Trace::from_memory(bytes, "bench");
  if (!trace) give_up(trace.error());
  return std::move(*trace);
}

const std::string& text() {
  static const std::string kText = text_trace();
  return kText;
}
const std::string& binary() {
  static const std::string kBinary = [] {
    std::string bytes;
    const auto trace = opened(text());
    const auto count = convert(*trace, workload::TraceFormat::binary,
                               [&](std::string_view piece) { bytes += piece; });
    if (!count) give_up(count.error());
    return bytes;
  }();
  return kBinary;
}

void replay(benchmark::State& state, const std::string& bytes) {
  stopwatch(state, "replay, ns an operation", kOperations / 2, [&] {
    const auto trace = opened(bytes);
    KernelConfig config;
    config.console = [](std::string_view) {};
    trace->head().kernel.apply(config);
    Kernel kernel(config);
    kernel.cpus().bind(0);
    double start = 0;
    kernel.cpus().clock().schedule(config.op_cost * (kOperations / 2), 0,
                                   [&start] { start = seconds_now(); });
    double taken = 0;
    {
      workload::Runner runner(trace->head(), kernel);
      if (const auto booted = runner.boot(); !booted) give_up(booted.error());
      const workload::Outcome outcome = workload::Replayer(*trace, runner).run();
      taken = seconds_now() - start;
      if (outcome.error) give_up(*outcome.error);
    }
    kernel.cpus().unbind();
    return taken;
  });
}

void parse(benchmark::State& state) {
  ContestOptions options;
  options.settle = 1;
  options.warm = 1;
  options.parts = static_cast<double>(text().size());
  contest(state, "parse, ns a byte",
          {{"parse",
            [](std::size_t n) {
              for (std::size_t i = 0; i < n; ++i) {
                const auto count = opened(text())->check();
                if (!count) give_up(count.error());
              }
            }},
           {"newlines",
            [](std::size_t n) {
              for (std::size_t i = 0; i < n; ++i) {
                const char* at = text().data();
                const char* const end = at + text().size();
                std::size_t lines = 0;
                while (const void* newline =
                           std::memchr(at, '\n', static_cast<std::size_t>(end - at))) {
                  ++lines;
                  at = static_cast<const char*>(newline) + 1;
                }
                benchmark::DoNotOptimize(lines);
              }
            }}},
          options);
}

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  row("binary", [](benchmark::State& state) { replay(state, binary()); });
  row("text", [](benchmark::State& state) { replay(state, text()); });
  row("parse", parse);
}
