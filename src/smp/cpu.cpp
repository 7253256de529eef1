// SPDX-License-Identifier: BSD-2-Clause
// The current CPU and its critical sections.
//
// Counterpart:  sys/kern/kern_switch.c (critical_enter, critical_exit)
// Invariants:   critnest != 0 while critbase != 0; the hot paths raise critnest alone and put
//               critbase back when they leave.
#include <dtmalloc/smp/cpu.hpp>

#include "smp/cpu_set.hpp"
#include "smp/membarrier.hpp"

namespace dtmalloc {

constinit Cpu unbound_cpu{.guard = {kGuardUnbound}};
constinit thread_local Cpu* curcpu = &unbound_cpu;

void critical_enter() {
  Cpu& cpu = *curcpu;
  DTM_CHECK(cpu.machine != nullptr, "critical_enter() on a thread that owns no CPU");
  if (cpu.critbase != 0) {
    cpu.critnest.store(++cpu.critbase, std::memory_order_relaxed);
    return;
  }
  while (true) {
    cpu.critbase = 1;
    cpu.critnest.store(1, std::memory_order_relaxed);
    light_barrier();
    if ((cpu.guard.load(std::memory_order_acquire) & kGuardStop) == 0) return;
    cpu.critbase = 0;
    cpu.critnest.store(0, std::memory_order_release);
    cpu.machine->wait_while_stopped(cpu);
  }
}

void critical_exit() {
  Cpu& cpu = *curcpu;
  DTM_CHECK(cpu.critbase != 0, "critical_exit() without critical_enter()");
  cpu.critnest.store(--cpu.critbase, std::memory_order_release);
  if (cpu.critbase == 0 && cpu.thread != nullptr) cpu.machine->clock().run_due();
}

}  // namespace dtmalloc
