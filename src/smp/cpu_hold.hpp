// SPDX-License-Identifier: BSD-2-Clause
// The calling thread owns all CPUs of its machine at once and goes from one to another by a store:
// for who plays the operations of many CPUs one after another.
//
// Example:
//   CpuHold hold(cpus);
//   hold.move_to(3);                  // as cpus.move_to(3)
//
// Locking:      the constructor waits for CPUs that other threads own
// Invariants:   while it lives each of these CPUs has one claim more than seats (SMP-2); the CPU of
//               the thread's seat is where CpuSet::bind() put it
#pragma once

#include <dtmalloc/smp/cpu.hpp>
#include <vector>

namespace dtmalloc {

class CpuHold {
 public:
  explicit CpuHold(CpuSet& cpus);
  // The thread owns the CPU that it is on, and no other.
  ~CpuHold();
  CpuHold(const CpuHold&) = delete;
  CpuHold& operator=(const CpuHold&) = delete;

  Cpu* const* cpus() const { return cpus_.data(); }
  int count() const { return static_cast<int>(cpus_.size()); }
  // Requires: 0 <= id < count(); not in a critical section.
  void move_to(int id) { curcpu = cpus_[static_cast<std::size_t>(id)]; }

 private:
  CpuSet& set_;
  std::vector<Cpu*> cpus_;
};

}  // namespace dtmalloc
