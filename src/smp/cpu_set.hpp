// SPDX-License-Identifier: BSD-2-Clause
// The inside of a CpuSet: who owns which CPU, the threads and their baton.
//
// Seat: what one host thread is on one machine (its simulated thread and CPU). In deterministic
// mode the thread that holds thread0 and all spawned threads form the group: one of them runs at a
// time, and they may share CPUs. Every other host thread is foreign: it owns its CPUs alone and
// sleeps for real.
//
// Locking:      `mutex` guards everything but the CPU pointers and `panicked`, which are published
//               with release stores. `stop_mutex` is taken before it. No lock is held while a
//               callout, a run_on_cpu() function or a thread's body runs (stop_mutex aside).
// Invariants:   SMP-1: of the group, only `running` executes; SMP-2: a slot's claims count the
//               seats whose CPU it is; SMP-3: a slot with claims has an owner.
#pragma once

#include <array>
#include <condition_variable>
#include <dtmalloc/smp/cpu.hpp>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

namespace dtmalloc {

extern Cpu unbound_cpu;

struct HostThread;

enum class SeatState { idle, ready, running, sleeping, timed, joining, done };

struct Seat {
  SimThread own;                // the simulated thread, unless the seat is thread0's
  SimThread* thread = nullptr;  // &own or the machine's thread0
  Cpu* cpu = nullptr;           // null: not bound now
  int last_cpu = -1;
  std::thread::id host;
  HostThread* record = nullptr;  // that host thread's, while it sits here
  bool group = false;
  bool spawned = false;
  SeatState state = SeatState::idle;
  const void* channel = nullptr;
  std::string operation, reason;
  std::uint64_t wake_at = 0;
  std::condition_variable wake;
  std::function<void()> body;
  std::exception_ptr failure;
  std::thread worker;
};

struct CpuSlot {
  std::unique_ptr<Cpu, void (*)(Cpu*)> cpu{nullptr, nullptr};
  const void* owner = nullptr;  // null: free; the group, a seat, or whoever stopped it
  int claims = 0;
  std::atomic<bool> left_by_panic{false};  // nobody waits for the section that the CPU is in
};

// Thrown through a spawned thread when the machine goes away under it.
struct ThreadEnd {};

// Which machine the calling host thread sits on.
struct HostThread {
  CpuSet::Impl* machine = nullptr;
  Seat* seat = nullptr;
  Cpu** curcpu_slot = &curcpu;
  void reset() {
    machine = nullptr;
    seat = nullptr;
    *curcpu_slot = &unbound_cpu;
  }
  ~HostThread();
};
HostThread& host_thread();

struct CpuSet::Impl {
  using MakeCpu = std::function<std::unique_ptr<Cpu, void (*)(Cpu*)>(int id)>;

  Impl(CpuSet& self_set, const SmpConfig& smp_config, MakeCpu make);
  ~Impl();

  CpuSet& self;
  SmpConfig config;
  MakeCpu make_cpu;
  Clock clock;
  SimThread thread0;
  std::array<std::atomic<Cpu*>, MAXCPU> cpus{};
  std::atomic<int> count{0};
  std::atomic<bool> panicked{false};
  std::atomic<int> group_size{0};  // seats of the group that are alive

  std::mutex mutex;
  std::condition_variable changed;  // a CPU became free, a guard was cleared, a waiter woke
  std::array<CpuSlot, MAXCPU> slots;
  std::list<Seat> seats;
  Seat* thread0_seat = nullptr;
  Seat* running = nullptr;  // of the group
  std::uint64_t random;
  int quantum = 1;
  int next_tid = 100001;
  bool shutdown = false;
  std::string panic_text;

  std::recursive_mutex stop_mutex;
  std::mutex console_mutex;
  std::function<void(std::string_view)> console;

  using Lock = std::unique_lock<std::mutex>;

  // cpu_set.cpp
  const void* owner_of(const Seat& seat) const {
    return seat.group ? static_cast<const void*>(this) : static_cast<const void*>(&seat);
  }
  Cpu& add_cpu(Lock&);
  Seat& take_seat(Lock&);  // the calling host thread's, made if it has none
  void claim(Lock&, Seat& seat, int id);
  void release(Lock&, Seat& seat);
  void leave(HostThread& host);
  [[noreturn]] void throw_panic();
  void mark_panic(Lock&, const std::string& message);

  // scheduler.cpp
  std::uint64_t next_random();
  Seat* pick(Lock& lock);
  void hand_over(Lock& lock, Seat& from, Seat& to);
  void leave_baton(Lock& lock, Seat& from);
  void block(Lock& lock, Seat& seat, SeatState state);
  void after_wake(Lock& lock, Seat& seat);
  void block_foreign(Lock& lock, Seat& seat);
  void run_spawned(Seat& seat);
  bool everyone_asleep() const;
  std::string sleepers() const;
  void end_threads();
};

}  // namespace dtmalloc
