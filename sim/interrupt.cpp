// SPDX-License-Identifier: BSD-2-Clause
// Signals and the timer of the progress line.
// Locking:      handlers only store to lock-free atomics, and wake who waits for time to pass

#include "interrupt.hpp"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <dtmalloc/smp/cpu.hpp>

namespace dtmalloc::sim {

std::atomic<bool> attention{false};

namespace {

std::atomic<std::int64_t> stop_time{0};  // of the first signal, in ns of the host's clock
std::atomic<bool> progress_due{false};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// The second signal of either kind kills. What comes at once is the same wish: timeout(1) sends its
// signal to the process and to its group.
void on_stop(int signal) {
  constexpr std::int64_t kAtOnce = 100000000;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
  std::int64_t first = 0;
  if (stop_time.compare_exchange_strong(first, now, std::memory_order_relaxed)) {
    attention.store(true, std::memory_order_relaxed);
    Clock::wake();
  } else if (now - first > kAtOnce) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

// Unlike SIG_IGN this is not passed on to the commands of system().
void on_closed_pipe(int) {}

void on_timer(int) {
  progress_due.store(true, std::memory_order_relaxed);
  attention.store(true, std::memory_order_relaxed);
  Clock::wake();
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void set_timer(long first_us, long next_us) {
  itimerval timer{};
  timer.it_value = {first_us / 1000000, first_us % 1000000};
  timer.it_interval = {next_us / 1000000, next_us % 1000000};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  handle(SIGPIPE, on_closed_pipe, SA_RESTART);
  // Also in a shell's background job, whose SIGINT is ignored: `kill -INT` is for scripts.
  for (const int signal : {SIGINT, SIGTERM}) handle(signal, SIG_DFL, 0);
}

void InterruptGuard::arm() {
  for (const int signal : {SIGINT, SIGTERM}) handle(signal, on_stop, SA_RESTART);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction old {};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == on_stop) {
      handle(signal, SIG_DFL, 0);
    }
  }
}

bool InterruptGuard::interrupted() { return stop_time.load(std::memory_order_relaxed) != 0; }

ProgressTimer::ProgressTimer() {
  if (::isatty(STDERR_FILENO) != 1) return;
  running_ = true;
  handle(SIGALRM, on_timer, SA_RESTART);
  set_timer(1000000, 250000);
}

ProgressTimer::~ProgressTimer() {
  if (!running_) return;
  set_timer(0, 0);
  handle(SIGALRM, SIG_IGN, 0);
}

bool ProgressTimer::due() { return progress_due.exchange(false, std::memory_order_relaxed); }

}  // namespace dtmalloc::sim
