// SPDX-License-Identifier: BSD-2-Clause
// The heavy half of an asymmetric barrier: every running thread of this process executes a full
// memory barrier before heavy_barrier() returns.
#pragma once

namespace dtmalloc {

// The light half: keeps the compiler from moving accesses across; costs no instruction.
inline void light_barrier() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
void heavy_barrier();

// For tests: uses the fallback from now on.
void heavy_barrier_without_membarrier(bool fallback);

}  // namespace dtmalloc
