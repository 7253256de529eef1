// SPDX-License-Identifier: BSD-2-Clause
// CPUs and their owners; stopping another thread's CPU; panic and console.
//
// Counterpart:  sys/kern/subr_smp.c, kern_shutdown.c (panic), subr_prf.c (printf)
// Locking:      see cpu_set.hpp. Never run_on_cpu() while holding a lock that a CPU's owner may
//               want before it enters a critical section.
#include "smp/cpu_set.hpp"

#include <cstdio>
#include <utility>

#include "smp/membarrier.hpp"
#include "smp/section.hpp"

namespace dtmalloc {
namespace {

// Guards the links between host threads and machines, for threads that end and machines that die;
// both may happen while the process exits, so it is never destroyed.
std::mutex& link_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// The calling thread is about to leave the CPU that it owns, whichever machine's it is. Of a
// section that a panic has left release() takes care.
void check_leaving() {
  const Cpu& cpu = *curcpu;
  if (cpu.critbase != 0 && !cpu.machine->panicked())
    cpu.machine->panic("a CPU cannot be left inside a critical section");
}

}  // namespace

HostThread& host_thread() {
  static thread_local HostThread host;
  return host;
}

HostThread::~HostThread() {
  const std::lock_guard link(link_mutex());
  if (machine != nullptr) machine->leave(*this);
}

CpuSet::Impl::Impl(CpuSet& self_set, const SmpConfig& smp_config, MakeCpu make)
    : self(self_set),
      config(smp_config),
      make_cpu(std::move(make)),
      clock(smp_config.real_clock),
      random(smp_config.seed) {}

CpuSet::Impl::~Impl() {
  end_threads();
  const std::lock_guard link(link_mutex());
  Lock lock(mutex);
  for (Seat& seat : seats)
    if (seat.record != nullptr) seat.record->reset();
}

Cpu& CpuSet::Impl::add_cpu(Lock&) {
  const int id = count.load(std::memory_order_relaxed);
  DTM_CHECK(id < MAXCPU, "more CPUs than MAXCPU");
  CpuSlot& slot = slots[static_cast<std::size_t>(id)];
  if (make_cpu)
    slot.cpu = make_cpu(id);
  else
    slot.cpu = {new Cpu, [](Cpu* cpu) { delete cpu; }};
  Cpu& cpu = *slot.cpu;
  cpu.id = id;
  cpu.machine = &self;
  if (panicked.load(std::memory_order_relaxed))
    cpu.guard.fetch_or(kGuardPanic, std::memory_order_relaxed);
  cpus[static_cast<std::size_t>(id)].store(&cpu, std::memory_order_release);
  count.store(id + 1, std::memory_order_release);
  return cpu;
}

Seat& CpuSet::Impl::take_seat(Lock& lock) {
  HostThread& host = host_thread();
  if (host.machine == this) return *host.seat;
  const auto id = std::this_thread::get_id();
  Seat* seat = nullptr;
  for (Seat& known : seats)
    if (known.host == id && known.state != SeatState::done) seat = &known;
  if (seat == nullptr) {
    seat = &seats.emplace_back();
    seat->host = id;
    if (thread0_seat == nullptr) {
      thread0_seat = seat;
      seat->thread = &thread0;
      seat->group = config.mode == RunMode::deterministic;
    } else {
      seat->thread = &seat->own;
      seat->own.tid = next_tid++;
    }
    if (seat->group) group_size.fetch_add(1, std::memory_order_relaxed);
  }
  if (seat->group && seat->state == SeatState::idle) {
    seat->state = SeatState::ready;
    changed.notify_all();
    if (running == nullptr) running = seat;
    seat->wake.wait(lock, [&] { return running == seat; });
    seat->state = SeatState::running;
  } else if (!seat->group) {
    seat->state = SeatState::running;
  }
  host.machine = this;
  host.seat = seat;
  seat->record = &host;
  return *seat;
}

void CpuSet::Impl::claim(Lock& lock, Seat& seat, int id) {
  CpuSlot& slot = slots[static_cast<std::size_t>(id)];
  if (seat.cpu == slot.cpu.get()) {
    curcpu = seat.cpu;  // a CpuHold may have left it
    return;
  }
  release(lock, seat);
  const void* owner = owner_of(seat);
  changed.wait(lock, [&] { return slot.owner == nullptr || slot.owner == owner; });
  slot.owner = owner;
  ++slot.claims;
  seat.cpu = slot.cpu.get();
  seat.last_cpu = id;
  seat.cpu->thread = seat.thread;
  curcpu = seat.cpu;
}

void CpuSet::Impl::release(Lock&, Seat& seat) {
  if (seat.cpu == nullptr) return;
  CpuSlot& slot = slots[static_cast<std::size_t>(seat.cpu->id)];
  if (seat.cpu->critbase != 0) {  // the thread ends, or a panic has left the section
    seat.cpu->critbase = 0;
    seat.cpu->critnest.store(0, std::memory_order_release);
  }
  slot.left_by_panic.store(false, std::memory_order_relaxed);
  if (--slot.claims == 0) {
    slot.owner = nullptr;
    slot.cpu->thread = nullptr;
    changed.notify_all();
  }
  seat.cpu = nullptr;
  curcpu = &unbound_cpu;
}

// Requires: link_mutex() held. The host thread ends or goes to another machine.
void CpuSet::Impl::leave(HostThread& host) {
  Lock lock(mutex);
  Seat& seat = *host.seat;
  release(lock, seat);
  if (!seat.spawned) {
    if (seat.group && running == &seat) running = nullptr;
    seat.state = SeatState::idle;
  }
  seat.record = nullptr;
  host.reset();
  changed.notify_all();
}

void CpuSet::Impl::mark_panic(Lock&, const std::string& message) {
  if (panicked.load(std::memory_order_relaxed)) return;
  panic_text = message;
  panicked.store(true, std::memory_order_release);
  for (int id = 0; id < count.load(std::memory_order_relaxed); ++id)
    self.cpu(id).guard.fetch_or(kGuardPanic, std::memory_order_release);
  for (Seat& seat : seats) seat.wake.notify_all();
  changed.notify_all();
  clock.rouse();
}

void CpuSet::Impl::throw_panic() {
  if (curcpu->machine == &self && curcpu->critbase != 0)
    slots[static_cast<std::size_t>(curcpu->id)].left_by_panic.store(true,
                                                                    std::memory_order_release);
  std::string text;
  {
    const Lock lock(mutex);
    text = panic_text;
  }
  const std::vector<std::string>& sites = self.current_thread().call_sites;
  throw KernelPanic(text, {sites.rbegin(), sites.rend()});
}

CpuSet::CpuSet(const SmpConfig& config,
               std::function<std::unique_ptr<Cpu, void (*)(Cpu*)>(int id)> make_cpu)
    : impl_(std::make_unique<Impl>(*this, config, std::move(make_cpu))) {
  Impl::Lock lock(impl_->mutex);
  for (int id = 0; id < config.count; ++id) impl_->add_cpu(lock);
}

CpuSet::~CpuSet() = default;

void CpuSet::boot(int cpus, bool may_grow) {
  Impl::Lock lock(impl_->mutex);
  impl_->config.may_grow = may_grow;
  while (count() < cpus) impl_->add_cpu(lock);
}

int CpuSet::count() const { return impl_->count.load(std::memory_order_acquire); }

Cpu& CpuSet::cpu(int id) {
  Cpu* cpu = id >= 0 && id < MAXCPU
                 ? impl_->cpus[static_cast<std::size_t>(id)].load(std::memory_order_acquire)
                 : nullptr;
  DTM_CHECK(cpu != nullptr, "no such CPU");
  return *cpu;
}

void CpuSet::bind(int id) {
  if (curcpu->machine == this && curcpu->id == id) return;
  check_leaving();
  HostThread& host = host_thread();
  if (host.machine != impl_.get()) {
    const std::lock_guard link(link_mutex());
    if (host.machine != nullptr) host.machine->leave(host);
  }
  Impl::Lock lock(impl_->mutex);
  DTM_CHECK(id >= 0 && id < MAXCPU, "no such CPU");
  DTM_CHECK(id < count() || impl_->config.may_grow, "no such CPU on this machine");
  while (count() <= id) impl_->add_cpu(lock);
  impl_->claim(lock, impl_->take_seat(lock), id);
}

Cpu& CpuSet::bind_any() {
  if (curcpu->machine == this) return *curcpu;
  check_leaving();
  HostThread& host = host_thread();
  if (host.machine != impl_.get()) {
    const std::lock_guard link(link_mutex());
    if (host.machine != nullptr) host.machine->leave(host);
  }
  Impl::Lock lock(impl_->mutex);
  Seat& seat = impl_->take_seat(lock);
  const void* owner = impl_->owner_of(seat);
  auto usable = [&](int id) {
    const CpuSlot& slot = impl_->slots[static_cast<std::size_t>(id)];
    return slot.owner == nullptr || slot.owner == owner;
  };
  while (true) {
    int chosen = seat.last_cpu >= 0 && usable(seat.last_cpu) ? seat.last_cpu : -1;
    for (int id = 0; chosen < 0 && id < count(); ++id)
      if (usable(id)) chosen = id;
    if (chosen < 0 && impl_->config.may_grow && count() < MAXCPU) chosen = impl_->add_cpu(lock).id;
    if (chosen >= 0) {
      impl_->claim(lock, seat, chosen);
      return *curcpu;
    }
    impl_->changed.wait(lock);
  }
}

void CpuSet::unbind() {
  HostThread& host = host_thread();
  if (host.machine != impl_.get()) return;
  check_leaving();
  const std::lock_guard link(link_mutex());
  impl_->leave(host);
}

void CpuSet::move_to(int id) { bind(id); }

void CpuSet::run_on_cpu(Cpu& cpu, const std::function<void()>& function) {
  Impl& impl = *impl_;
  std::atomic<bool>& left_by_panic = impl.slots[static_cast<std::size_t>(cpu.id)].left_by_panic;
  if (curcpu->machine == this && curcpu->critbase != 0) {
    if (!panicked()) panic("run_on_cpu: called in a critical section");
    // The section is over for everybody, so that what reads the machine still works.
    impl.slots[static_cast<std::size_t>(curcpu->id)].left_by_panic.store(true,
                                                                         std::memory_order_release);
  }
  if (curcpu == &cpu) {
    // In a section, so that another thread that stops this CPU waits until the function is through.
    section_enter();
    struct Leave {
      ~Leave() { section_exit(); }
    } leave_section;
    function();
    return;
  }
  const std::lock_guard stop(impl.stop_mutex);
  {
    Impl::Lock lock(impl.mutex);
    CpuSlot& slot = impl.slots[static_cast<std::size_t>(cpu.id)];
    const HostThread& host = host_thread();
    const bool mine = host.machine == &impl && slot.owner == impl.owner_of(*host.seat);
    if (mine) {  // another thread of the group: it does not run now
      lock.unlock();
      function();
      return;
    }
    if (slot.owner == nullptr) {  // nobody's: nobody may take it meanwhile
      slot.owner = &slot;
      lock.unlock();
      try {
        function();
      } catch (...) {
        lock.lock();
        slot.owner = nullptr;
        impl.changed.notify_all();
        throw;
      }
      lock.lock();
      slot.owner = nullptr;
      impl.changed.notify_all();
      return;
    }
  }
  set_guard(cpu, kGuardStop);
  heavy_barrier();
  while (cpu.critnest.load(std::memory_order_acquire) != 0 &&
         !left_by_panic.load(std::memory_order_acquire))
    std::this_thread::yield();
  try {
    function();
  } catch (...) {
    clear_guard(cpu, kGuardStop);
    throw;
  }
  clear_guard(cpu, kGuardStop);
}

void CpuSet::run_on_each_cpu(const std::function<void(Cpu&)>& function) {
  for (int id = 0; id < count(); ++id) {
    Cpu& target = cpu(id);
    run_on_cpu(target, [&] { function(target); });
  }
}

void CpuSet::synchronize() {
  run_on_each_cpu([](Cpu&) {});
}

void CpuSet::set_guard(Cpu& cpu, std::uint32_t bits) {
  cpu.guard.fetch_or(bits, std::memory_order_seq_cst);
}

void CpuSet::clear_guard(Cpu& cpu, std::uint32_t bits) {
  cpu.guard.fetch_and(~bits, std::memory_order_release);
  if ((bits & kGuardStop) != 0) {
    const Impl::Lock lock(impl_->mutex);
    impl_->changed.notify_all();
  }
}

void CpuSet::wait_while_stopped(Cpu& cpu) {
  Impl::Lock lock(impl_->mutex);
  impl_->changed.wait(
      lock, [&] { return (cpu.guard.load(std::memory_order_acquire) & kGuardStop) == 0; });
}

Clock& CpuSet::clock() { return impl_->clock; }
void CpuSet::set_interrupt_check(std::function<bool()> check) {
  impl_->clock.set_interrupt_check(std::move(check));
}
SimThread& CpuSet::thread0() { return impl_->thread0; }
RunMode CpuSet::mode() const { return impl_->config.mode; }

SimThread& CpuSet::current_thread() {
  const HostThread& host = host_thread();
  return host.machine == impl_.get() ? *host.seat->thread : impl_->thread0;
}

void CpuSet::panic(const std::string& message) {
  {
    Impl::Lock lock(impl_->mutex);
    impl_->mark_panic(lock, message);
  }
  impl_->throw_panic();
}

bool CpuSet::panicked() const { return impl_->panicked.load(std::memory_order_acquire); }
std::string CpuSet::panic_message() const {
  const Impl::Lock lock(impl_->mutex);
  return impl_->panic_text;
}

void CpuSet::check_panic() {
  if (panicked() && std::uncaught_exceptions() == 0) impl_->throw_panic();
}

void CpuSet::console(std::string_view text) {
  const std::lock_guard lock(impl_->console_mutex);
  if (impl_->console)
    impl_->console(text);
  else
    std::fwrite(text.data(), 1, text.size(), stderr);
}

void CpuSet::set_console(std::function<void(std::string_view)> sink) {
  const std::lock_guard lock(impl_->console_mutex);
  impl_->console = std::move(sink);
}

}  // namespace dtmalloc
