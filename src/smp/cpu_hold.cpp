// SPDX-License-Identifier: BSD-2-Clause
// Holding all CPUs of a machine.
// Locking:      see cpu_set.hpp

#include "smp/cpu_hold.hpp"

#include "smp/cpu_set.hpp"

namespace dtmalloc {

CpuHold::CpuHold(CpuSet& cpus) : set_(cpus) {
  cpus.bind_any();
  CpuSet::Impl& impl = *host_thread().machine;
  const Seat& seat = *host_thread().seat;
  const void* owner = impl.owner_of(seat);
  CpuSet::Impl::Lock lock(impl.mutex);
  const int count = impl.count.load(std::memory_order_relaxed);
  for (int id = 0; id < count; ++id) {
    CpuSlot& slot = impl.slots[static_cast<std::size_t>(id)];
    impl.changed.wait(lock, [&] { return slot.owner == nullptr || slot.owner == owner; });
    slot.owner = owner;
    ++slot.claims;
    slot.cpu->thread = seat.thread;
    cpus_.push_back(slot.cpu.get());
  }
}

CpuHold::~CpuHold() {
  const Cpu& last = *curcpu;
  CpuSet::Impl& impl = *host_thread().machine;
  curcpu = host_thread().seat->cpu;
  {
    const CpuSet::Impl::Lock lock(impl.mutex);
    for (Cpu* cpu : cpus_) {
      CpuSlot& slot = impl.slots[static_cast<std::size_t>(cpu->id)];
      if (--slot.claims != 0) continue;
      slot.owner = nullptr;
      cpu->thread = nullptr;
    }
    impl.changed.notify_all();
  }
  if (curcpu->critbase == 0 && last.critbase == 0) set_.bind(last.id);
}

}  // namespace dtmalloc
