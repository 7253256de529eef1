// SPDX-License-Identifier: BSD-2-Clause
// curthread as D reads it: struct thread with its process, credentials and jail, made from the
// simulated thread when a clause asks for it.
// Counterpart:  sys/sys/proc.h, ucred.h, jail.h
// Invariants:   one view a CPU and consumer; it shows the thread that was asked for last. Addresses
//               in it are simulated ones.
// Differs:      DEVIATES: of the kernel's members these alone, at offsets of their own.
#pragma once

#include <cstdint>
#include <dtmalloc/dtrace/provider.hpp>

#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

struct ThreadView {
  static constexpr std::size_t kComm = 20;  // MAXCOMLEN + 1
  struct Thread {
    std::uint64_t td_proc = 0;
    std::uint64_t td_ucred = 0;
    std::int32_t td_tid = 0;
    std::int32_t td_errno = 0;
    char td_name[kComm] = {};
  } thread;
  struct Proc {
    std::uint64_t p_ucred = 0;
    std::int32_t p_pid = 0;
    char p_comm[kComm] = {};
  } proc;
  struct Ucred {
    std::uint64_t cr_prison = 0;
    std::uint32_t cr_uid = 0, cr_ruid = 0, cr_rgid = 0;
  } ucred;
  struct Prison {
    std::int32_t pr_id = 0;
    char pr_name[4] = "0";  // prison0
  } prison;
};

// What `curthread` is in a firing of this thread; its memory is readable from here on.
std::uint64_t show_thread(DifState& state, const SimThread& thread);
void describe_threads(Framework& framework);

}  // namespace dtmalloc::dtrace
