// SPDX-License-Identifier: BSD-2-Clause
// The machine's clock and its callouts.
//
// Counterpart:  sys/kern/kern_timeout.c, kern_tc.c
// Locking:      mutex_ guards the callouts; they run with no lock held
// Differs:      callouts run on the thread that advances the clock; inside a critical section they
//               wait for its end
#include <algorithm>
#include <chrono>
#include <dtmalloc/smp/cpu.hpp>
#include <utility>

namespace dtmalloc {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::int64_t kVirtualBoot = 1793059200ll * 1000000000ll;  // 2026-10-27 00:00:00 UTC

std::uint64_t monotonic() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace

struct Clock::Callout {
  CalloutId id;
  std::uint64_t due;
  std::uint64_t interval;
  std::function<void()> function;
};

Clock::Clock(bool real) : real_(real), next_due_(kNever), boot_real_(real ? monotonic() : 0) {}
Clock::~Clock() = default;

std::uint64_t Clock::now() const {
  return real_ ? monotonic() - boot_real_ : now_.load(std::memory_order_relaxed);
}

std::int64_t Clock::wall() const {
  if (!real_) return kVirtualBoot + static_cast<std::int64_t>(now());
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void Clock::refresh() {
  std::uint64_t next = kNever;
  for (const Callout& callout : callouts_) next = std::min(next, callout.due);
  next_due_.store(next, std::memory_order_relaxed);
}

// Runs callouts due up to `target`, each at its own time; returns the time reached.
std::uint64_t Clock::run_until(std::uint64_t target) {
  while (next_due_.load(std::memory_order_relaxed) <= target) {
    std::function<void()> function;
    {
      const std::lock_guard lock(mutex_);
      auto first = std::min_element(callouts_.begin(), callouts_.end(),
                                    [](const Callout& a, const Callout& b) {
                                      return std::pair(a.due, a.id) < std::pair(b.due, b.id);
                                    });
      if (first == callouts_.end() || first->due > target) break;
      if (!real_ && first->due > now_.load(std::memory_order_relaxed))
        now_.store(first->due, std::memory_order_relaxed);
      function = first->function;
      if (first->interval == 0)
        callouts_.erase(first);
      else
        first->due += first->interval;
      refresh();
    }
    function();
  }
  return target;
}

void Clock::advance(std::uint64_t ns) {
  DTM_CHECK(!real_, "a real clock cannot be advanced");
  const std::uint64_t target = now_.load(std::memory_order_relaxed) + ns;
  if (next_due_.load(std::memory_order_relaxed) <= target && curcpu->critbase == 0)
    run_until(target);
  if (target > now_.load(std::memory_order_relaxed)) now_.store(target, std::memory_order_relaxed);
}

void Clock::run_due() {
  if (next_due_.load(std::memory_order_relaxed) <= now() && curcpu->critbase == 0) run_until(now());
}

std::uint64_t Clock::next_due() const { return next_due_.load(std::memory_order_relaxed); }

std::uint64_t Clock::next_one_shot() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t next = kNever;
  for (const Callout& callout : callouts_)
    if (callout.interval == 0) next = std::min(next, callout.due);
  return next;
}

CalloutId Clock::schedule(std::uint64_t first, std::uint64_t interval,
                          std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  callouts_.push_back({next_id_, first, interval, std::move(function)});
  refresh();
  return next_id_++;
}

void Clock::cancel(CalloutId id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(callouts_, [id](const Callout& callout) { return callout.id == id; });
  refresh();
}

}  // namespace dtmalloc
