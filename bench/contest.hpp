// SPDX-License-Identifier: BSD-2-Clause
// What all benches share: contenders of one question, measured in turns in one process.
//
// A round gives each contender one repetition, in a new random order. A repetition is quiet when no
// thread of the process was switched out and a throughput probe before and after it ran within 12 %
// of its best; an unquiet one is taken again, a few times. Counters of a row: each contender's
// median over its quiet repetitions (over all, if there are too few), and `quiet`, the least number
// of quiet repetitions that a contender got: below kEnoughQuiet the row is noisy. The row's label
// is "SUBJECT, UNIT": the contender that the row is about, and what the numbers are.
//
// Example:
//   row("tight/64", [](benchmark::State& state) {
//     contest(state, "ours, ns a pair", {{"ours", ours}, {"glibc", glibc}}, {});
//   });
//
// A row is one iteration, so that what it needs is set up once. --benchmark_min_time says how long
// each of its contenders is measured; a row without enough quiet repetitions goes on up to four
// times as long.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtmalloc::bench {

inline constexpr int kEnoughQuiet = 5;

struct Contender {
  std::string name;
  std::function<void(std::size_t)> run;  // that many operations
  std::function<void()> enter = {};      // before a repetition, outside the time measured
  std::function<void()> leave = {};      // after it
};

struct ContestOptions {
  double seconds = 300e-6;  // of a repetition
  double parts = 1;         // of an operation: the counters are for one part
  std::size_t least = 1;    // operations of a repetition
  std::size_t most = 1u << 20;
  // Operations of each contender once, until the memory that it keeps is touched; and before each
  // repetition, to bring back what the others threw out of the caches.
  std::size_t settle = 3;
  std::size_t warm = 1000;
  // What a repetition of `subject` costs over one of `base`, by the firings of an operation, is the
  // counter `firing`, round by round.
  std::string subject = {}, base = {};
  double firings = 0;
};

void contest(benchmark::State& state, const std::string& label, std::vector<Contender> contenders,
             const ContestOptions& options);

// A number that is no contender's time: one counter, named as the label's subject.
void report(benchmark::State& state, const std::string& label, double value);

// Runs `once` in each round, which returns the seconds that it took; the counter is their median in
// nanoseconds, over `divisor`.
void stopwatch(benchmark::State& state, const std::string& label, double divisor,
               const std::function<double()>& once);

double seconds_now();  // of a monotonic clock

// xorshift: the same sequence in every run.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

 private:
  std::uint64_t state_;
};

// Registers a row.
template <class Function>
benchmark::internal::Benchmark* row(const std::string& name, Function function) {
  return benchmark::RegisterBenchmark(name.c_str(), std::move(function))
      ->UseManualTime()
      ->Iterations(1);
}

}  // namespace dtmalloc::bench

// Each program registers its rows here.
void register_rows();
