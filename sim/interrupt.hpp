// SPDX-License-Identifier: BSD-2-Clause
// What breaks into a running workload: ^C, the progress line's clock, the consumer's clock.

#pragma once

#include <atomic>

namespace dtmalloc::sim {

// Set by whoever wants the run to look up between two operations.
extern std::atomic<bool> attention;

// SIGINT and SIGTERM kill until arm(), when something looks at interrupted(): from then on the
// first one asks the run to end, and one that is sent later (not within 0.1 s) kills. A closed pipe
// is an error of write(2), not a signal.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static void arm();
  static bool interrupted();
};

// Raises `attention` a few times a second once a second has passed, if standard error is a
// terminal.
class ProgressTimer {
 public:
  ProgressTimer();
  ~ProgressTimer();
  ProgressTimer(const ProgressTimer&) = delete;
  ProgressTimer& operator=(const ProgressTimer&) = delete;
  bool due();  // a line should be printed now

 private:
  bool running_ = false;
};

}  // namespace dtmalloc::sim
