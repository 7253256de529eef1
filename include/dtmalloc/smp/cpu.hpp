// SPDX-License-Identifier: BSD-2-Clause
// Simulated CPUs, threads and time: what one machine runs on.
//
// A Cpu is owned by one host thread at a time (curcpu). The owner enters its critical section with
// a plain store, reads the guard word, and leaves with a release store; it needs no lock. Whoever
// else wants something done on that CPU uses CpuSet::run_on_cpu(), which sets a guard bit, makes
// the bit visible (membarrier), waits until the section is left, and runs the function while the
// owner is held in its cold path.
//
// Example:
//   CpuSet cpus({.count = 4, .seed = 7});
//   cpus.bind(2);                                  // this host thread is now CPU 2
//   { CriticalSection section; /* per-CPU data */ }
//   { InterruptContext interrupt(cpus); /* what an interrupt handler does */ }
//   cpus.run_on_cpu(cpus.cpu(0), [&] { /* CPU 0 stands still */ });
//
// Units:         time in nanoseconds since boot.
// Errors:        a misuse of the machine is a KernelPanic.
// Thread safety: Cpu fields belong to the owner but for `guard`; CpuSet and Clock are safe from any
//                thread.
// Source:        src/README.md, "CPUs"; critical_enter(9), sleepqueue(9).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <dtmalloc/sys/error.hpp>
#include <dtmalloc/sys/probe_hook.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {

inline constexpr int MAXCPU = 1024;

class CpuSet;
struct Frame;
struct FunctionProbes;

// Why a call must leave the fast path. One or-ed word per CPU.
enum GuardBit : std::uint32_t {
  kGuardUnbound = 1u << 0,  // the placeholder of threads that own no CPU
  kGuardStop = 1u << 1,     // run_on_cpu() waits for this CPU
  kGuardPanic = 1u << 2,    // the machine has panicked
  kGuardDebug = 1u << 3,    // a kernel option checks every call (INVARIANTS, subzones, ...)
  kGuardTwin = 1u << 4,     // function boundary probes: the instrumented twin runs instead
};

// A thread of the simulated machine.
struct SimThread {
  std::string execname = "kernel";
  int pid = 0;
  int ppid = 0;
  int tid = 100000;
  int uid = 0;
  int gid = 0;
  std::vector<std::string> call_sites;  // simulated stack, outermost first ("foo_attach+0x1c")
  std::uint64_t run_time = 0;           // ns it has run: vtimestamp
  int intr_nesting = 0;                 // in an interrupt
  int no_sleeping = 0;                  // in a no-sleep region
  std::uint32_t domain_iter = 0;        // td_domain.dr_iter: its round-robin over NUMA domains
  std::uint32_t line = 0;               // of the statement that it runs, for who has no call sites
  const Frame* frames = nullptr;        // functions that the machine is in, the innermost first
};

// One CPU. The layers above extend it (kern's per-CPU caches derive from it); the hot path reads
// nothing that is not reached from here.
struct alignas(128) Cpu {
  // The statistics line that an unregistered type (mti_stats 0) points at: see `stats_base`.
  std::uint64_t no_stats[8] = {};
  std::atomic<std::uint32_t> guard{0};     // GuardBit
  std::atomic<std::uint32_t> critnest{0};  // != 0: the owner is inside a critical section
  std::uint32_t critbase = 0;  // explicit critical_enter()s and firings; the owner's own
  int id = 0;
  // Page number in the arena -> zone index + 1; 0: look. So is a page of another domain.
  const std::uint8_t* page_zone = nullptr;
  std::uintptr_t arena_base = 0;
  std::size_t arena_pages = 0;
  dtrace_malloc_probe_func_t dtrace_malloc_probe = nullptr;  // this kernel's, copied to each CPU
  bool dtrace_malloc_enabled = false;                        // ditto
  int domain = 0;                                            // NUMA domain
  CpuSet* machine = nullptr;
  SimThread* thread = nullptr;      // curthread
  void* dtrace = nullptr;           // the framework's per-CPU state
  void* kernel = nullptr;           // the Kernel
  std::byte* stats_base = nullptr;  // + mti_stats = this CPU's malloc_type_stats; the Cpu itself
  const FunctionProbes* function_probes = nullptr;  // looked at when kGuardTwin is set
};

// Code that may end up in a shared library needs the model that the loader can serve.
// The CPU that this host thread owns; never null: unbound threads share a placeholder whose guard
// word says kGuardUnbound.
#if defined(__PIC__) && !defined(__PIE__)
#define DTM_TLS_MODEL "initial-exec"
#else
#define DTM_TLS_MODEL "local-exec"
#endif
extern constinit thread_local Cpu* curcpu __attribute__((tls_model(DTM_TLS_MODEL)));

// critical_enter(9) / critical_exit(9) on the current CPU; nests.
void critical_enter();
void critical_exit();
class CriticalSection {
 public:
  CriticalSection() { critical_enter(); }
  ~CriticalSection() noexcept(false) { critical_exit(); }  // a callout that is due may panic
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;
};

// Where a checker looks, words that several threads touch are atomics in every place.
#if defined(DTM_CHECKS) || defined(__SANITIZE_THREAD__)
#define DTM_ATOMIC_WORDS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DTM_ATOMIC_WORDS 1
#endif
#endif

// Adds to a counter that only the owner writes and others may read: a plain add instruction in
// release builds, relaxed atomics where a checker looks.
inline void owner_add(std::uint64_t& counter, std::uint64_t amount) {
#ifdef DTM_ATOMIC_WORDS
  std::atomic_ref<std::uint64_t> shared(counter);
  shared.store(shared.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
#else
  counter += amount;
#endif
}
inline std::uint64_t racy_read(const std::uint64_t& counter) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(counter))
      .load(std::memory_order_relaxed);
}

using CalloutId = std::uint64_t;

// When a callout that stands still falls due, once it is armed (Clock::arm).
class Alarm {
 public:
  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  bool armed() const { return due_.load(std::memory_order_relaxed) != ~std::uint64_t{0}; }

 private:
  friend class Clock;
  std::atomic<std::uint64_t> due_{~std::uint64_t{0}};
};

// What a callout that looks after something tells the clock, so that it runs only while there is
// something to look at. It outlives the callout.
struct Watch {
  // A call would find nothing. Only the callout sets it, Clock::rouse() clears it.
  std::atomic<bool> idle{false};
  // Instead of idle calls at `first`, `last` and each interval in between.
  std::function<void(std::uint64_t first, std::uint64_t last)> skipped;
  // Once a call has not ended by then, though time passes elsewhere: `overdue` runs, once, in
  // whatever section, with the clock's lock held. Read when a callout of the clock ends.
  std::atomic<std::uint64_t> deadline{~std::uint64_t{0}};
  std::function<void()> overdue;
};

// The machine's clock: virtual (advanced by the runner) or the host's monotonic clock.
// Callouts run on the thread that advances the clock, outside critical sections, in time order
// (ties in order of creation); a callout never runs twice at once, and must not sleep. While an
// exception unwinds the thread they wait for the next look at the clock.
class Clock {
 public:
  // Virtual time ends here, as wall() is 64 bits wide.
  static constexpr std::uint64_t kEndOfTime = 7430312836854775807;

  explicit Clock(bool real);
  // ns since boot; never goes back
  std::uint64_t now() const { return real_ ? real_now() : now_.load(std::memory_order_relaxed); }
  std::int64_t wall() const;  // ns since the epoch; virtual: 2026-10-27 00:00:00 UTC + now()
  bool is_real() const { return real_; }
  // Whether `ns` from now is still before the end of time.
  bool can_advance(std::uint64_t ns) const;
  std::uint64_t after(std::uint64_t ns) const;  // now() + ns, at most kEndOfTime
  // Virtual only; runs what falls due on the way, stops at the end of time. False: the interrupt
  // check said so after a callout, and the clock stands at that callout's time.
  bool advance(std::uint64_t ns);
  void run_due();
  std::uint64_t next_due() const;  // ~0: nothing
  // The same without what is idle: nothing happens before, unless somebody does something.
  std::uint64_t next_event() const;
  // First call at `first` (absolute), then every `interval` ns (0: once).
  CalloutId schedule(std::uint64_t first, std::uint64_t interval, std::function<void()> function);
  // A callout that runs when `alarm`, which outlives it, was armed: once for every arming.
  CalloutId schedule(Alarm& alarm, std::function<void()> function);
  // Arms it for `time`, or leaves it at an earlier one. Takes no lock, allocates nothing: what is
  // inside a probe may do it.
  void arm(Alarm& alarm, std::uint64_t time);
  // First call at `first`, then every `interval` ns, but for calls that `watch` says are idle.
  CalloutId schedule(std::uint64_t first, std::uint64_t interval, std::function<void()> function,
                     Watch& watch);
  // There is something to look at again. As arm(), and no system call unless a thread naps.
  void rouse(Watch& watch);
  // Lets time pass and runs nothing that falls due: a busy wait in a critical section.
  void spin(std::uint64_t ns);
  // The callout will not begin again, and has ended on return unless it is the caller itself. Not
  // with a lock held that the callout takes, and not in a critical section.
  void cancel(CalloutId id);
  // As cancel(), but does not wait for a call that has begun on another thread.
  void stop(CalloutId id);
  // See CpuSet::set_interrupt_check().
  void set_interrupt_check(std::function<bool()> check);
  bool interrupted() const;  // asks the check
  // Sleeps on a real clock. What changes after its construction and is followed by rouse() or
  // wake() ends it; so make it before the last look at what is waited for.
  class Nap {
   public:
    explicit Nap(Clock& clock);
    ~Nap();
    Nap(const Nap&) = delete;
    Nap& operator=(const Nap&) = delete;
    // Less when something falls due before, or when the interrupt check says so.
    void until(std::uint64_t time);

   private:
    Clock& clock_;
    std::uint32_t seen_;
  };
  void rouse() const;  // who naps looks again; as arm()
  // Ends the naps on all clocks. For signal handlers, too.
  static void wake();

 private:
  struct Callout;
  struct Running;
  struct Call;
  std::uint64_t real_now() const;
  CalloutId add(Callout callout);
  bool look(std::uint64_t target);
  bool run_until(std::uint64_t target);
  std::uint64_t leap(const Callout& callout, std::uint64_t target) const;  // Requires: mutex_ held
  void warn();
  void reach(std::uint64_t time);
  static void lower(std::atomic<std::uint64_t>& time, std::uint64_t to);
  void refresh();                 // Requires: mutex_ held
  bool runs(CalloutId id) const;  // ditto
  const bool real_;
  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> next_due_;
  std::atomic<std::uint64_t> overdue_{~std::uint64_t{0}};  // the first deadline of a watch
  std::atomic<int> napping_{0};
  std::uint64_t boot_real_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable ended_;  // a callout has ended
  std::uint64_t next_id_ = 1;
  std::vector<Callout> callouts_;
  std::vector<Running> running_;
  std::shared_ptr<const std::function<bool()>> check_;

 public:
  // Due time of the next callout that does not repeat; ~0: none.
  std::uint64_t next_one_shot() const;
  ~Clock();
};

// How the threads of one machine take turns.
enum class RunMode {
  deterministic,  // one at a time, by baton, in an order that the seed decides
  parallel,       // host threads own disjoint CPUs
};

struct SmpConfig {
  int count = 4;         // CPUs at boot
  bool may_grow = true;  // unbound host threads get a CPU of their own, up to MAXCPU
  std::uint64_t seed = 1;
  bool real_clock = false;
  RunMode mode = RunMode::deterministic;
};

class CpuSet {
 public:
  // `make_cpu` builds a CPU's object (the layers above pass theirs) and fills what they added.
  explicit CpuSet(const SmpConfig& config,
                  std::function<std::unique_ptr<Cpu, void (*)(Cpu*)>(int id)> make_cpu = {});
  ~CpuSet();
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;

  // Brings the CPUs to `cpus`; for owners that must exist before their CPUs do.
  void boot(int cpus, bool may_grow);
  int count() const;  // CPUs that exist; ids 0 .. count()-1
  Cpu& cpu(int id);

  // Makes the calling host thread the owner of CPU `id` (waits until it is free). This and the
  // next two panic inside a critical section of the CPU that they leave.
  void bind(int id);
  // Gives the calling thread some free CPU, growing the set if allowed; what an unbound call does.
  Cpu& bind_any();
  void unbind();  // the calling thread owns no CPU of this machine any more
  // Moves the calling simulated thread to another CPU without switching stacks.
  void move_to(int id);

  // Runs `function` while the owner of `cpu` is outside its critical section and held there; on
  // the caller's own CPU, in a section. Panics inside a critical section, unless a panic left it.
  void run_on_cpu(Cpu& cpu, const std::function<void()>& function);
  // run_on_cpu() on every CPU, one after another; afterwards no CPU is inside an old section.
  void run_on_each_cpu(const std::function<void(Cpu&)>& function);
  // Holds the owner of `cpu` while kGuardStop is set; what cold paths call when they see it.
  void wait_while_stopped(Cpu& cpu);
  // Waits until every CPU has been outside its critical section once: dtrace_sync().
  void synchronize();
  void set_guard(Cpu& cpu, std::uint32_t bits);
  void clear_guard(Cpu& cpu, std::uint32_t bits);

  Clock& clock();
  SimThread& thread0();
  SimThread& current_thread();

  // --- simulated threads (deterministic mode gives each a stack and one baton)
  // Starts a thread on a CPU; it first runs when the baton reaches it.
  SimThread& spawn(const SimThread& attributes, int cpu, std::function<void()> body);
  void join_all();        // the caller waits for all spawned threads
  void end_threads();     // the spawned threads unwind where they stand; no more can start
  void operation_done();  // between operations: maybe passes the baton (seeded quanta)
  // Waits, in virtual or real time. False: interrupted, or the clock ends before that time.
  bool sleep_until(std::uint64_t time);
  // `check` is asked between the callouts of a long wait, from whichever thread waits; once it
  // says true, sleep_until() and Clock::advance() return early. Null: never. While a real clock's
  // machine is idle nobody asks: what makes it true from outside calls Clock::wake().
  void set_interrupt_check(std::function<bool()> check);
  // Sleeps on a channel until wakeup(channel); `what` names operation and reason in a deadlock
  // report: "malloc 65536 M_A M_WAITOK", "free pages". Panics in a critical section, and with a
  // list of all sleepers when nothing can wake anybody; threads that own no CPU do not count.
  // `unless`, asked with the wake-ups shut out, cancels the sleep: no wake-up is lost between it
  // and the sleep. It must not call into the CpuSet.
  void sleep_on(const void* channel, const std::string& operation, const std::string& reason,
                const std::function<bool()>& unless = {});
  void wakeup(const void* channel);
  RunMode mode() const;

  // --- panic and console
  // The first panic marks the machine (kGuardPanic on every CPU): every later entry throws it
  // again. Carries the current thread's call sites.
  [[noreturn]] void panic(const std::string& message);
  bool panicked() const;
  std::string panic_message() const;
  // Throws if the machine has panicked; what cold paths call on kGuardPanic.
  void check_panic();
  // printf(9): what the kernel prints on its console. Default: stderr.
  void console(std::string_view text);
  void set_console(std::function<void(std::string_view)> sink);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

// The calling thread handles an interrupt: td_intr_nesting_level. Nests.
class InterruptContext {
 public:
  explicit InterruptContext(CpuSet& cpus) : nesting_(of_thread(cpus).intr_nesting) { ++nesting_; }
  ~InterruptContext() { --nesting_; }
  InterruptContext(const InterruptContext&) = delete;
  InterruptContext& operator=(const InterruptContext&) = delete;
  // The thread that is bound to a CPU of the machine; an unbound one is bound.
  static SimThread& of_thread(CpuSet& cpus) {
    cpus.bind_any();
    return cpus.current_thread();
  }

 private:
  int& nesting_;
};

// The calling thread must not sleep: THREAD_NO_SLEEPING. Nests.
class NoSleeping {
 public:
  explicit NoSleeping(CpuSet& cpus) : nesting_(InterruptContext::of_thread(cpus).no_sleeping) {
    ++nesting_;
  }
  ~NoSleeping() { --nesting_; }
  NoSleeping(const NoSleeping&) = delete;
  NoSleeping& operator=(const NoSleeping&) = delete;

 private:
  int& nesting_;
};

}  // namespace dtmalloc
