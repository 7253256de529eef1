// SPDX-License-Identifier: BSD-2-Clause
// Quiet repetitions in turns, and the benches' main().
#include "contest.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>

namespace dtmalloc::bench {
namespace {

double min_time = 0.03;  // --benchmark_min_time

constexpr int kTries = 3;            // of a repetition that is not quiet
constexpr double kTolerance = 1.12;  // of the throughput probe

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Four independent chains of additions: slowed by a neighbour on the sibling hardware thread, by
// whoever takes the CPU away, and by a lower clock. Additions of constants would be folded by some
// cores.
double throughput_probe() {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, step = 5;
  const double start = seconds_now();
  for (int i = 0; i < 1500; ++i) {
#if defined(__x86_64__)
    __asm__ volatile(
        "add %4, %0\n add %4, %1\n add %4, %2\n add %4, %3\n"
        "add %4, %0\n add %4, %1\n add %4, %2\n add %4, %3\n"
        "add %4, %0\n add %4, %1\n add %4, %2\n add %4, %3\n"
        "add %4, %0\n add %4, %1\n add %4, %2\n add %4, %3\n"
        : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
        : "r"(step));
#else
    for (int k = 0; k < 4; ++k) {
      a += step, b += step, c += step, d += step;
      __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
#endif
  }
  return seconds_now() - start;
}

long switched_out() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

struct Repetition {
  double seconds;
  bool quiet;
};

Repetition repetition(const std::function<void()>& work) {
  static double best_probe = 1;
  for (int attempt = 1;; ++attempt) {
    const long switches = switched_out();
    const double before = throughput_probe();
    const double start = seconds_now();
    work();
    const double seconds = seconds_now() - start;
    const double after = throughput_probe();
    best_probe = std::min({best_probe, before, after});
    const bool quiet =
        std::max(before, after) <= kTolerance * best_probe && switched_out() == switches;
    if (quiet || attempt == kTries) return {seconds, quiet};
  }
}

// Of one contender: what an operation took, all repetitions and quiet ones.
struct Times {
  std::vector<double> all, quiet;
  void add(double value, bool is_quiet) {
    all.push_back(value);
    if (is_quiet) quiet.push_back(value);
  }
  double typical() const { return median(quiet.size() >= kEnoughQuiet ? quiet : all); }
};

// Goes through rounds for min_time; while there are too few quiet ones up to four times that, or
// for as many rounds as a few quiet ones may take; not longer than a hundred times min_time on a
// machine that is busy otherwise.
template <class Round, class LeastQuiet>
double go_on(const Round& round, const LeastQuiet& least_quiet) {
  const double patience = 100 * min_time;
  const double start = seconds_now();
  double total = 0;
  int rounds = 0;
  do {
    total += round();
    ++rounds;
    if (seconds_now() - start > patience) break;
  } while (total < min_time ||
           (least_quiet() < kEnoughQuiet && (total < 4 * min_time || rounds < 4 * kEnoughQuiet)));
  return total;
}

// How many operations a repetition has.
std::size_t calibrate(const Contender& contender, const ContestOptions& options) {
  contender.run(options.settle);
  for (std::size_t count = options.least;; count *= 2) {
    double seconds = options.seconds;
    for (int i = 0; i < 3; ++i) {
      const double start = seconds_now();
      contender.run(count);
      seconds = std::min(seconds, seconds_now() - start);
    }
    if (seconds < options.seconds / 8 && count < options.most) continue;
    const double wanted = static_cast<double>(count) * options.seconds / seconds;
    return std::clamp(static_cast<std::size_t>(wanted), options.least, options.most);
  }
}

}  // namespace

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void contest(benchmark::State& state, const std::string& label, std::vector<Contender> contenders,
             const ContestOptions& options) {
  const auto with = [](const Contender& contender, const std::function<void()>& work) {
    if (contender.enter) contender.enter();
    work();
    if (contender.leave) contender.leave();
  };
  std::vector<std::size_t> operations;
  for (const Contender& contender : contenders)
    with(contender, [&] { operations.push_back(calibrate(contender, options)); });

  std::vector<std::size_t> order(contenders.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<Times> times(contenders.size());
  std::vector<double> last(contenders.size());
  std::vector<bool> last_quiet(contenders.size());
  Times firing;
  Random random(7);
  std::size_t subject = 0, base = 0;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].name == options.subject) subject = i;
    if (contenders[i].name == options.base) base = i;
  }
  const auto round = [&] {
    double sum = 0;
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.next() % i]);
    for (const std::size_t which : order) {
      const Contender& contender = contenders[which];
      const std::size_t count = operations[which];
      with(contender, [&] {
        contender.run(std::min(options.warm, options.most));
        const Repetition done = repetition([&] { contender.run(count); });
        last[which] = done.seconds / static_cast<double>(count) / options.parts;
        last_quiet[which] = done.quiet;
        sum += done.seconds;
      });
      times[which].add(last[which], last_quiet[which]);
    }
    if (options.firings > 0)
      firing.add((last[subject] - last[base]) / options.firings,
                 last_quiet[subject] && last_quiet[base]);
    return sum / static_cast<double>(contenders.size());
  };
  const auto least_quiet = [&] {
    std::size_t least = times[0].quiet.size();
    for (const Times& of_one : times) least = std::min(least, of_one.quiet.size());
    if (options.firings > 0) least = std::min(least, firing.quiet.size());
    return least;
  };
  for (auto _ : state) state.SetIterationTime(go_on(round, least_quiet));
  for (std::size_t i = 0; i < contenders.size(); ++i)
    state.counters[contenders[i].name] = times[i].typical() * 1e9;
  if (options.firings > 0) state.counters["firing"] = firing.typical() * 1e9;
  state.counters["quiet"] = static_cast<double>(least_quiet());
  state.SetLabel(label);
}

void report(benchmark::State& state, const std::string& label, double value) {
  state.counters[label.substr(0, label.find(','))] = value;
  state.counters["quiet"] = kEnoughQuiet;
  state.SetLabel(label);
}

void stopwatch(benchmark::State& state, const std::string& label, double divisor,
               const std::function<double()>& once) {
  Times times;
  const auto round = [&] {
    double taken = 0;
    const Repetition done = repetition([&] { taken = once(); });
    times.add(taken, done.quiet);
    return taken;
  };
  for (auto _ : state) state.SetIterationTime(go_on(round, [&] { return times.quiet.size(); }));
  report(state, label, times.typical() / divisor * 1e9);
  state.counters["quiet"] = static_cast<double>(times.quiet.size());
}

}  // namespace dtmalloc::bench

int main(int argc, char** argv) {
  // Allocators that are opened at run time want more room for thread-local data than the loader
  // keeps by itself; it reads this at the start of the process only.
  constexpr char kTunables[] = "glibc.rtld.optional_static_tls=16384";
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables == nullptr || std::strstr(tunables, "optional_static_tls") == nullptr) {
    const std::string all =
        tunables == nullptr ? kTunables : std::string(tunables) + ":" + kTunables;
    setenv("GLIBC_TUNABLES", all.c_str(), 1);
    execv("/proc/self/exe", argv);
  }
  constexpr std::string_view kMinTime = "--benchmark_min_time=";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(kMinTime))
      dtmalloc::bench::min_time = std::atof(argv[i] + kMinTime.size());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  register_rows();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
