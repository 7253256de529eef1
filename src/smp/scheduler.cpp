// SPDX-License-Identifier: BSD-2-Clause
// Simulated threads: the baton of deterministic runs, sleeping, deadlocks.
//
// Counterpart:  sys/kern/sched_ule.c, subr_sleepqueue.c
// Locking:      see cpu_set.hpp
// Differs:      a simulated thread is a host thread; of the group only the holder of the baton
//               runs. Who is next is drawn from the seed.
#include <algorithm>
#include <utility>
#include <vector>

#include "smp/cpu_set.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr int kMaxQuantum = 16;  // operations

}  // namespace

std::uint64_t CpuSet::Impl::next_random() {  // splitmix64
  random += 0x9e3779b97f4a7c15ull;
  std::uint64_t x = random;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

bool CpuSet::Impl::everyone_asleep() const {
  bool group_alive = false;
  for (const Seat& seat : seats) {
    if (seat.group) {
      if (seat.state == SeatState::running || seat.state == SeatState::ready ||
          seat.state == SeatState::timed)
        return false;
      group_alive = true;
    } else if ((seat.cpu != nullptr && seat.state == SeatState::running) ||
               seat.state == SeatState::ready) {
      return false;
    }
  }
  return group_alive || !seats.empty();
}

std::string CpuSet::Impl::sleepers() const {
  std::string out;
  for (const Seat& seat : seats) {
    if (seat.state != SeatState::sleeping) continue;
    out += (out.empty() ? "" : "; ") + seat.thread->execname + " (tid " +
           std::to_string(seat.thread->tid) + "): " + seat.operation + " waits for " + seat.reason;
  }
  return out;
}

// The next thread of the group to run, advancing virtual time as far as needed. Null: nothing can
// wake anybody. Callouts run without the lock, and may throw: a panic, or what a hook throws.
Seat* CpuSet::Impl::pick(Lock& lock) {
  while (true) {
    std::vector<Seat*> ready;
    std::uint64_t wake = kNever;
    const std::uint64_t now = clock.now();
    const bool ending = shutdown || panicked.load(std::memory_order_relaxed);
    for (Seat& seat : seats) {
      if (!seat.group || seat.state == SeatState::done || seat.state == SeatState::idle) continue;
      if (seat.state == SeatState::timed && seat.wake_at <= now) seat.state = SeatState::ready;
      if (seat.state == SeatState::joining) {
        bool waits = false;
        for (const Seat& other : seats)
          if (other.spawned && &other != &seat && other.state != SeatState::done) waits = true;
        if (!waits) seat.state = SeatState::ready;
      }
      if (ending && seat.state != SeatState::running) seat.state = SeatState::ready;
      if (seat.state == SeatState::ready) ready.push_back(&seat);
      if (seat.state == SeatState::timed) wake = std::min(wake, seat.wake_at);
    }
    if (!ready.empty())
      return ready[ready.size() == 1 ? 0 : static_cast<std::size_t>(next_random() % ready.size())];
    if (ending) return nullptr;
    std::uint64_t next = wake;
    if (wake != kNever || clock.next_one_shot() != kNever)
      next = std::min(wake, clock.next_event());
    if (next == kNever) return nullptr;
    bool reached = true;
    if (clock.is_real()) {
      Clock::Nap nap(clock);
      lock.unlock();
      nap.until(next);
      clock.run_due();
      reached = !clock.interrupted();
    } else {
      lock.unlock();
      reached = clock.advance(next > now ? next - now : 0);
    }
    lock.lock();
    if (reached) continue;
    for (Seat& seat : seats)
      if (seat.group && seat.state == SeatState::timed) seat.state = SeatState::ready;
  }
}

// `from` has a state of its own already; it comes back when somebody hands the baton to it.
void CpuSet::Impl::hand_over(Lock& lock, Seat& from, Seat& to) {
  to.state = SeatState::running;
  running = &to;
  if (&to != &from) {
    to.wake.notify_all();
    from.wake.wait(lock, [&] { return running == &from; });
  }
  after_wake(lock, from);
}

void CpuSet::Impl::after_wake(Lock& lock, Seat& seat) {
  seat.state = SeatState::running;
  if (seat.cpu != nullptr) seat.cpu->thread = seat.thread;
  if (shutdown && seat.spawned) throw ThreadEnd{};
  if (panicked.load(std::memory_order_relaxed) && std::uncaught_exceptions() == 0) {
    lock.unlock();
    throw_panic();
  }
}

// The calling thread of the group cannot go on: gives the baton away until its state allows.
void CpuSet::Impl::block(Lock& lock, Seat& seat, SeatState state) {
  seat.state = state;
  Seat* next = nullptr;
  const auto awake = [&] {
    try {
      return pick(lock);
    } catch (...) {  // the thread goes on where it is, unwinding
      if (!lock.owns_lock()) lock.lock();
      seat.state = SeatState::running;
      throw;
    }
  };
  while ((next = awake()) == nullptr) {
    if (everyone_asleep()) {
      const std::string text = "deadlock: " + sleepers();
      seat.state = SeatState::running;
      mark_panic(lock, text);
      lock.unlock();
      throw_panic();
    }
    changed.wait(lock);
  }
  hand_over(lock, seat, *next);
}

void CpuSet::Impl::block_foreign(Lock& lock, Seat& seat) {
  seat.state = SeatState::sleeping;
  changed.notify_all();
  const auto over = [&] {
    return seat.state != SeatState::sleeping || shutdown ||
           panicked.load(std::memory_order_relaxed);
  };
  while (!over()) {
    if (!everyone_asleep()) {
      changed.wait(lock);
      continue;
    }
    if (clock.next_one_shot() == kNever) {
      mark_panic(lock, "deadlock: " + sleepers());
      break;
    }
    // Nobody else looks at the clock now.
    const std::uint64_t now = clock.now();
    const std::uint64_t due = clock.next_event();
    if (!clock.is_real()) {
      lock.unlock();
      clock.advance(due > now && due != kNever ? due - now : 0);
    } else {
      Clock::Nap nap(clock);
      lock.unlock();
      nap.until(due);
    }
    clock.run_due();
    lock.lock();
  }
  seat.state = SeatState::running;
  if (shutdown && seat.spawned) throw ThreadEnd{};
  if (panicked.load(std::memory_order_relaxed)) {
    lock.unlock();
    throw_panic();
  }
}

// The whole life of a spawned thread on its host thread.
void CpuSet::Impl::run_spawned(Seat& seat) {
  Lock lock(mutex);
  HostThread& host = host_thread();
  host.machine = this;
  host.seat = &seat;
  seat.host = std::this_thread::get_id();
  seat.record = &host;
  if (seat.group) seat.wake.wait(lock, [&] { return running == &seat; });
  try {
    if (!shutdown && !panicked.load(std::memory_order_relaxed)) {
      claim(lock, seat, seat.last_cpu);
      seat.state = SeatState::running;
      lock.unlock();
      seat.body();
      lock.lock();
    }
  } catch (const KernelPanic&) {
    if (!lock.owns_lock()) lock.lock();
  } catch (const ThreadEnd&) {
    if (!lock.owns_lock()) lock.lock();
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    seat.failure = std::current_exception();
  }
  release(lock, seat);
  seat.body = nullptr;
  if (seat.group) {
    group_size.fetch_sub(1, std::memory_order_relaxed);
    leave_baton(lock, seat);
  }
  seat.state = SeatState::done;
  seat.record = nullptr;
  host.reset();
  changed.notify_all();
}

// The last thing that a thread of the group does. While nobody of the group can run but a foreign
// thread may still wake somebody, it keeps the baton.
void CpuSet::Impl::leave_baton(Lock& lock, Seat& from) {
  from.state = SeatState::done;
  changed.notify_all();
  Seat* next = nullptr;
  // What a callout throws here has no thread to go to: a panic has marked the machine already, and
  // everything else waits for join_all().
  const auto following = [&]() -> Seat* {
    while (!shutdown) {
      try {
        return pick(lock);
      } catch (const KernelPanic&) {
        if (!lock.owns_lock()) lock.lock();
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!from.failure) from.failure = std::current_exception();
      }
    }
    return nullptr;
  };
  while ((next = following()) == nullptr && !shutdown) {
    if (!everyone_asleep()) {
      changed.wait(lock);
      continue;
    }
    const std::string who = sleepers();
    if (who.empty()) break;
    mark_panic(lock, "deadlock: " + who);
  }
  if (shutdown) return;  // end_threads() deals the baton
  running = next;
  if (next == nullptr) return;
  next->state = SeatState::running;
  next->wake.notify_all();
}

void CpuSet::Impl::end_threads() {
  Lock lock(mutex);
  shutdown = true;
  changed.notify_all();
  clock.rouse();
  for (Seat& seat : seats) {
    if (!seat.spawned) continue;
    if (seat.group && seat.state != SeatState::done) {
      running = &seat;
      seat.wake.notify_all();
      changed.wait(lock, [&] { return seat.state == SeatState::done; });
    }
    lock.unlock();
    if (seat.worker.joinable()) seat.worker.join();
    lock.lock();
  }
  running = nullptr;
}

void CpuSet::end_threads() { impl_->end_threads(); }

SimThread& CpuSet::spawn(const SimThread& attributes, int cpu, std::function<void()> body) {
  bind_any();
  Impl& impl = *impl_;
  Impl::Lock lock(impl.mutex);
  while (count() <= cpu) {
    DTM_CHECK(impl.config.may_grow, "no such CPU on this machine");
    impl.add_cpu(lock);
  }
  const bool group = impl.config.mode == RunMode::deterministic;
  DTM_CHECK(!group || host_thread().seat->group, "spawn() from a thread outside the baton's group");
  Seat& seat = impl.seats.emplace_back();
  seat.own = attributes;
  seat.own.frames = nullptr;
  if (attributes.tid == SimThread{}.tid) seat.own.tid = impl.next_tid++;
  seat.thread = &seat.own;
  seat.spawned = true;
  seat.group = group;
  seat.last_cpu = cpu;
  seat.state = SeatState::ready;
  seat.body = std::move(body);
  if (group) impl.group_size.fetch_add(1, std::memory_order_relaxed);
  seat.worker = std::thread([&impl, &seat] { impl.run_spawned(seat); });
  return seat.own;
}

void CpuSet::join_all() {
  bind_any();
  Impl& impl = *impl_;
  Seat& me = *host_thread().seat;
  const int home = curcpu->id;
  if (!me.group) unbind();
  Impl::Lock lock(impl.mutex);
  auto others = [&] {
    for (const Seat& seat : impl.seats)
      if (seat.spawned && &seat != &me && seat.state != SeatState::done) return true;
    return false;
  };
  if (me.group) {
    if (others()) impl.block(lock, me, SeatState::joining);
  } else {
    impl.changed.wait(lock, [&] { return !others(); });
  }
  std::exception_ptr failure;
  for (auto seat = impl.seats.begin(); seat != impl.seats.end(); ++seat) {
    if (!seat->spawned || &*seat == &me || seat->state != SeatState::done) continue;
    if (!failure) failure = std::exchange(seat->failure, nullptr);
    if (!seat->worker.joinable()) continue;
    std::thread worker = std::move(seat->worker);
    lock.unlock();
    worker.join();
    lock.lock();
  }
  lock.unlock();
  if (!me.group) bind(home);
  if (failure) std::rethrow_exception(failure);
  check_panic();
}

void CpuSet::operation_done() {
  Impl& impl = *impl_;
  if (impl.group_size.load(std::memory_order_relaxed) < 2) return;
  if (curcpu->machine != this || curcpu->critbase != 0) return;
  Impl::Lock lock(impl.mutex);
  HostThread& host = host_thread();
  if (!host.seat->group || --impl.quantum > 0) return;
  impl.quantum = 1 + static_cast<int>(impl.next_random() % kMaxQuantum);
  host.seat->state = SeatState::ready;
  impl.hand_over(lock, *host.seat, *impl.pick(lock));
}

bool CpuSet::sleep_until(std::uint64_t time) {
  bind_any();
  if (curcpu->critbase != 0) panic("sleeping in a critical section: wait");
  Impl& impl = *impl_;
  Clock& clock = impl.clock;
  const std::uint64_t end = std::min(time, Clock::kEndOfTime);
  Seat& me = *host_thread().seat;
  if (me.group) {
    Impl::Lock lock(impl.mutex);
    me.wake_at = end;
    impl.block(lock, me, SeatState::timed);
    return clock.now() >= time;
  }
  for (std::uint64_t now = clock.now(); now < end; now = clock.now()) {
    if (!clock.is_real()) {
      check_panic();
      if (!clock.advance(end - now)) break;
      continue;
    }
    Clock::Nap nap(clock);
    check_panic();
    nap.until(end);
    clock.run_due();
    if (clock.interrupted()) break;
  }
  return clock.now() >= time;
}

void CpuSet::sleep_on(const void* channel, const std::string& operation, const std::string& reason,
                      const std::function<bool()>& unless) {
  bind_any();
  if (curcpu->critbase != 0) panic("sleeping in a critical section: " + operation);
  Impl& impl = *impl_;
  Impl::Lock lock(impl.mutex);
  Seat& me = *host_thread().seat;
  if (unless && unless()) return;
  me.channel = channel;
  me.operation = operation;
  me.reason = reason;
  if (me.group)
    impl.block(lock, me, SeatState::sleeping);
  else
    impl.block_foreign(lock, me);
}

void CpuSet::wakeup(const void* channel) {
  Impl& impl = *impl_;
  const Impl::Lock lock(impl.mutex);
  for (Seat& seat : impl.seats)
    if (seat.state == SeatState::sleeping && seat.channel == channel) seat.state = SeatState::ready;
  impl.changed.notify_all();
  impl.clock.rouse();
}

}  // namespace dtmalloc
