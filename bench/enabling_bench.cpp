// SPDX-License-Identifier: BSD-2-Clause
// Enabling and disabling while threads allocate: what it takes, and what it costs the threads.
//
// `enable and disable` rows: one callback on one probe, in microseconds, while so many threads run
// pairs. The rows `pair`: `beside` is a thread's pair while another thread enables and disables
// another type's probe without a pause, `alone` the pair when nobody does.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "machine.hpp"
#include "workloads.hpp"

namespace dtmalloc::bench {
namespace {

void empty_callback(const dtrace::ProbeFiring&, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                    std::uintptr_t, std::uintptr_t) {}
const dtrace::ProbeDescription kOther = {"dtmalloc", "", "other", "malloc", 0};

void enable_and_disable(dtrace::Framework& framework) {
  const auto enabling = framework.enable(kOther, empty_callback, nullptr);
  if (!enabling) std::abort();
  framework.disable(*enabling);
}

// Threads that do something until this goes away.
class Background {
 public:
  Background(int threads, const std::function<void(int)>& step) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this, i, step] {
        while (!stop_.load(std::memory_order_relaxed)) step(i);
      });
  }
  ~Background() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

void latency(benchmark::State& state, int threads) {
  Machine machine(threads + 1);
  machine.enter();
  Tracing tracing(machine.kernel);
  {
    Background pairs(threads, [&](int i) {
      machine.kernel.cpus().bind(i + 1);
      tight_pairs(kernel_calls(), 64, &machine.type, 1000);
    });
    stopwatch(state, "enabling, us to enable and disable", 1e3, [&] {
      const double start = seconds_now();
      enable_and_disable(tracing.framework);
      return seconds_now() - start;
    });
  }
}

void disturbed(benchmark::State& state) {
  Machine machine(2);
  machine.enter();
  Tracing tracing(machine.kernel);
  std::unique_ptr<Background> toggling;
  const auto pairs = [&](std::size_t n) { tight_pairs(kernel_calls(), 64, &machine.type, n); };
  ContestOptions options;
  options.seconds = 1e-3;
  contest(state, "beside, ns a pair",
          {{"alone", pairs},
           {"beside", pairs,
            [&] {
              toggling = std::make_unique<Background>(1, [&](int) {
                machine.kernel.cpus().bind(1);
                enable_and_disable(tracing.framework);
              });
            },
            [&] { toggling = nullptr; }}},
          options);
}

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  for (const int threads : {0, 1, cpus > 2 ? cpus - 1 : 2})
    row("enable and disable/threads:" + std::to_string(threads),
        [threads](benchmark::State& state) { latency(state, threads); });
  row("pair", disturbed);
}
