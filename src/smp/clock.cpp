// SPDX-License-Identifier: BSD-2-Clause
// The machine's clock and its callouts.
//
// Counterpart:  sys/kern/kern_timeout.c, kern_tc.c
// Locking:      mutex_ guards the callouts; they run with no lock held
// Invariants:   next_due_ <= what is due first and is not running, but for alarms that are being
//               armed; a call that its watch says is idle does nothing, so it is left out
// Differs:      callouts run on the thread that advances the clock; inside a critical section they
//               wait for its end
#include <linux/futex.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <dtmalloc/smp/cpu.hpp>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

namespace dtmalloc {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::int64_t kVirtualBoot = 1793059200ll * 1000000000ll;  // 2026-10-27 00:00:00 UTC
static_assert(Clock::kEndOfTime == std::numeric_limits<std::int64_t>::max() - kVirtualBoot);

std::uint64_t monotonic() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

// Naps wait for a change of it: of one process, so that a signal handler needs no clock.
constinit std::atomic<std::uint32_t> wakes{0};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

void wait_for_wake(std::uint32_t seen, std::uint64_t ns) {
  constexpr std::uint64_t kSecond = 1000000000;
  const timespec timeout{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  syscall(SYS_futex, &wakes, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
}

// What is due beyond the end of time never is.
std::uint64_t due_at(std::uint64_t time) { return time > Clock::kEndOfTime ? kNever : time; }

}  // namespace

struct Clock::Callout {
  CalloutId id;
  std::uint64_t due;
  std::uint64_t interval;
  std::function<void()> function;
  Alarm* alarm = nullptr;
  Watch* watch = nullptr;
  std::uint64_t warned = kNever;  // the deadline of the watch that is known to be over

  bool idle() const { return watch != nullptr && watch->idle.load(std::memory_order_seq_cst); }
  // Of the watch; never once it is known to be over.
  std::uint64_t deadline() const {
    const std::uint64_t time =
        watch != nullptr ? watch->deadline.load(std::memory_order_relaxed) : kNever;
    return time == warned ? kNever : time;
  }
  std::uint64_t when() const {
    return alarm != nullptr ? alarm->due_.load(std::memory_order_seq_cst) : due;
  }
};

struct Clock::Running {
  CalloutId id;
  std::thread::id thread;
};

// A callout that has begun; the record goes when it returns or throws.
struct Clock::Call {
  Clock& clock;
  CalloutId id;
  ~Call() {
    const std::lock_guard lock(clock.mutex_);
    std::erase_if(clock.running_, [this](const Running& running) { return running.id == id; });
    clock.refresh();
    clock.ended_.notify_all();
  }
};

Clock::Clock(bool real) : real_(real), next_due_(kNever), boot_real_(real ? monotonic() : 0) {}
Clock::~Clock() = default;

std::uint64_t Clock::real_now() const { return monotonic() - boot_real_; }

std::int64_t Clock::wall() const {
  if (!real_) return kVirtualBoot + static_cast<std::int64_t>(now());
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool Clock::can_advance(std::uint64_t ns) const {
  const std::uint64_t time = now();
  return time <= kEndOfTime && ns <= kEndOfTime - time;
}

std::uint64_t Clock::after(std::uint64_t ns) const {
  return can_advance(ns) ? now() + ns : kEndOfTime;
}

bool Clock::runs(CalloutId id) const {
  return std::any_of(running_.begin(), running_.end(),
                     [id](const Running& running) { return running.id == id; });
}

void Clock::refresh() {
  std::uint64_t next = kNever;
  std::uint64_t overdue = kNever;
  for (const Callout& callout : callouts_) {
    if (callout.when() < next && !runs(callout.id)) next = callout.when();
    overdue = std::min(overdue, callout.deadline());
  }
  overdue_.store(overdue, std::memory_order_relaxed);
  if (overdue != kNever) next = std::min(next, overdue + 1);
  next_due_.store(next, std::memory_order_seq_cst);
  // An alarm that was armed meanwhile is seen here, or sees what was stored.
  for (const Callout& callout : callouts_)
    if (callout.alarm != nullptr && !runs(callout.id)) lower(next_due_, callout.when());
}

void Clock::lower(std::atomic<std::uint64_t>& time, std::uint64_t to) {
  std::uint64_t seen = time.load(std::memory_order_seq_cst);
  while (to < seen && !time.compare_exchange_weak(seen, to, std::memory_order_seq_cst)) {
  }
}

void Clock::arm(Alarm& alarm, std::uint64_t time) {
  lower(alarm.due_, due_at(time));
  lower(next_due_, due_at(time));
  rouse();
}

void Clock::spin(std::uint64_t ns) {
  const std::uint64_t target = after(ns);
  if (!real_) {
    reach(target);
    warn();
    return;
  }
  while (now() < target) {
  }
}

// Other threads may be there already.
void Clock::reach(std::uint64_t time) {
  std::uint64_t seen = now_.load(std::memory_order_relaxed);
  while (seen < time && !now_.compare_exchange_weak(seen, time, std::memory_order_relaxed)) {
  }
}

void Clock::rouse(Watch& watch) {
  if (watch.idle.exchange(false, std::memory_order_seq_cst)) rouse();
}

void Clock::rouse() const {
  if (napping_.load(std::memory_order_seq_cst) > 0) wake();
}

void Clock::wake() {
  wakes.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr,
          0);
}

Clock::Nap::Nap(Clock& clock) : clock_(clock) {
  clock_.napping_.fetch_add(1, std::memory_order_seq_cst);
  seen_ = wakes.load(std::memory_order_seq_cst);
}

Clock::Nap::~Nap() { clock_.napping_.fetch_sub(1, std::memory_order_seq_cst); }

void Clock::Nap::until(std::uint64_t time) {
  DTM_CHECK(clock_.real_, "who naps on a virtual clock never wakes");
  const bool asked = clock_.interrupted();
  const std::uint64_t end = std::min(time, clock_.next_event());
  const std::uint64_t from = clock_.now();
  if (!asked && from < end) wait_for_wake(seen_, end - from);
}

// The last idle call up to `target` before anything else runs. The callout is the first that is
// due.
std::uint64_t Clock::leap(const Callout& callout, std::uint64_t target) const {
  std::uint64_t limit = target;
  for (const Callout& other : callouts_) {
    if (other.id == callout.id || other.idle() || runs(other.id)) continue;
    const std::uint64_t when = other.when();
    limit = std::min(limit, callout.id < other.id ? when : when - 1);
  }
  return callout.due + (limit - callout.due) / callout.interval * callout.interval;
}

// Tells the watches whose deadlines have passed.
void Clock::warn() {
  const std::uint64_t time = now();
  if (overdue_.load(std::memory_order_relaxed) >= time) return;
  const std::lock_guard lock(mutex_);
  for (Callout& callout : callouts_) {
    const std::uint64_t deadline = callout.deadline();
    if (deadline >= time) continue;
    callout.warned = deadline;
    callout.watch->overdue();
  }
  refresh();
}

// Runs callouts due up to `target`, each at its own time. False: interrupted.
bool Clock::run_until(std::uint64_t target) {
  if (std::uncaught_exceptions() != 0) return true;
  while (next_due_.load(std::memory_order_relaxed) <= target) {
    std::function<void()> function;
    std::shared_ptr<const std::function<bool()>> check;
    CalloutId id = 0;
    Watch* idle = nullptr;
    std::uint64_t skipped_first = 0;
    std::uint64_t skipped_last = 0;
    {
      const std::lock_guard lock(mutex_);
      auto first = callouts_.end();
      for (auto it = callouts_.begin(); it != callouts_.end(); ++it) {
        if (it->when() > target || runs(it->id)) continue;
        if (first == callouts_.end() ||
            std::pair(it->when(), it->id) < std::pair(first->when(), first->id))
          first = it;
      }
      if (first == callouts_.end()) break;
      if (!real_) reach(first->when());
      id = first->id;
      check = check_;
      running_.push_back({id, std::this_thread::get_id()});
      if (first->idle()) {
        idle = first->watch;
        // Real time slept over them; virtual time is late only where a section held them back.
        skipped_first = real_ ? first->due : std::max(first->due, now());
        first->due = leap(*first, target);
        if (!real_) reach(first->due);
        skipped_last = std::max(first->due, skipped_first);
      } else {
        function = first->function;
      }
      if (first->alarm != nullptr)
        first->alarm->due_.store(kNever, std::memory_order_seq_cst);
      else if (first->interval == 0)
        callouts_.erase(first);
      else
        first->due = due_at(first->due + std::min(first->interval, kNever - first->due));
      refresh();
    }
    {
      const Call call{*this, id};
      if (idle != nullptr)
        idle->skipped(skipped_first, skipped_last);
      else
        function();
    }
    if (check && (*check)()) {
      rouse();
      return false;
    }
  }
  return true;
}

// Something is due up to `target`, or overdue. False: interrupted.
bool Clock::look(std::uint64_t target) {
  if (curcpu->critbase == 0) {
    warn();
    return run_until(target);
  }
  if (!real_) reach(target);
  warn();
  return true;
}

bool Clock::advance(std::uint64_t ns) {
  // As a rule nothing is due and nobody else advances the clock; a process with one thread needs no
  // locked instruction to know.
  std::uint64_t time = now_.load(std::memory_order_relaxed);
  if (!real_ && ns <= kEndOfTime - time && time + ns < next_due_.load(std::memory_order_relaxed)) {
    if (__libc_single_threaded != 0) {
      now_.store(time + ns, std::memory_order_relaxed);
      return true;
    }
    if (now_.compare_exchange_strong(time, time + ns, std::memory_order_relaxed)) return true;
  }
  const auto rest = [ this, ns ]() __attribute__((noinline, cold)) {
    DTM_CHECK(!real_, "a real clock cannot be advanced");
    const std::uint64_t target = after(ns);
    if (next_due_.load(std::memory_order_relaxed) <= target && !look(target)) return false;
    reach(target);
    return true;
  };
  return rest();
}

void Clock::run_due() {
  const std::uint64_t time = now();
  if (next_due_.load(std::memory_order_relaxed) <= time) look(time);
}

std::uint64_t Clock::next_due() const { return next_due_.load(std::memory_order_relaxed); }

std::uint64_t Clock::next_event() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t next = kNever;
  for (const Callout& callout : callouts_)
    if (!callout.idle() && !runs(callout.id)) next = std::min(next, callout.when());
  return next;
}

std::uint64_t Clock::next_one_shot() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t next = kNever;
  for (const Callout& callout : callouts_)
    if (callout.interval == 0 && callout.alarm == nullptr) next = std::min(next, callout.due);
  return next;
}

CalloutId Clock::add(Callout callout) {
  CalloutId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = callout.id = next_id_++;
    callouts_.push_back(std::move(callout));
    refresh();
  }
  rouse();
  return id;
}

CalloutId Clock::schedule(std::uint64_t first, std::uint64_t interval,
                          std::function<void()> function) {
  return add({0, due_at(first), interval, std::move(function)});
}

CalloutId Clock::schedule(std::uint64_t first, std::uint64_t interval,
                          std::function<void()> function, Watch& watch) {
  DTM_CHECK(interval > 0, "what is watched over repeats");
  return add({0, due_at(first), interval, std::move(function), nullptr, &watch});
}

CalloutId Clock::schedule(Alarm& alarm, std::function<void()> function) {
  return add({0, kNever, 0, std::move(function), &alarm});
}

void Clock::stop(CalloutId id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(callouts_, [id](const Callout& callout) { return callout.id == id; });
  refresh();
}

void Clock::cancel(CalloutId id) {
  stop(id);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] {
    return std::none_of(running_.begin(), running_.end(), [id](const Running& running) {
      return running.id == id && running.thread != std::this_thread::get_id();
    });
  });
}

void Clock::set_interrupt_check(std::function<bool()> check) {
  const std::lock_guard lock(mutex_);
  check_ = check ? std::make_shared<const std::function<bool()>>(std::move(check)) : nullptr;
}

bool Clock::interrupted() const {
  std::shared_ptr<const std::function<bool()>> check;
  {
    const std::lock_guard lock(mutex_);
    check = check_;
  }
  return check && (*check)();
}

}  // namespace dtmalloc
