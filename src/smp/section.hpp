// SPDX-License-Identifier: BSD-2-Clause
// The critical section as UMA and malloc(9) enter it: on the current CPU, without the look at due
// callouts that critical_exit() makes. Nests with critical_enter().
#pragma once

#include <dtmalloc/smp/cpu.hpp>

namespace dtmalloc {

// Requires: the calling thread owns a CPU of `machine`. Returns it.
inline Cpu& section_enter() {
  critical_enter();
  return *curcpu;
}

inline void section_exit() {
  Cpu& cpu = *curcpu;
  cpu.critnest.store(--cpu.critbase, std::memory_order_release);
}

}  // namespace dtmalloc
