// SPDX-License-Identifier: BSD-2-Clause
// A ledger that begins in a machine that runs already, from who kept account of its blocks so far.
//
// Locking:      the caller is the one thread that runs on the machine
// Differs:      peaks, the sums of all requests and what was lost begin at zero
#pragma once

#include "kern/ledger_impl.hpp"

namespace dtmalloc {

class LedgerStart {
 public:
  using Place = Ledger::Impl::Place;
  // Requires: the kernel has none.
  LedgerStart(Kernel& kernel, const LedgerConfig& config);

  // As places say where and who.
  Ledger::Impl::StackId stack(const SimThread& at);
  std::uint32_t name(const std::string& execname);
  // What the statistics of a type count and no block stands for.
  void manual(const malloc_type& mtp, std::int64_t blocks, std::int64_t bytes);
  // A block that lives; in the order of allocation.
  void lives(const void* addr, const malloc_type& mtp, std::uint64_t request,
             const Place& allocated);
  // One that does not; in the order of the frees.
  void freed(const void* addr, const malloc_type& mtp, std::uint64_t request,
             const Place& allocated, const Place& freed);
  // The kernel has the ledger from here on; `last` is the largest number of an event so far.
  void finish(std::uint64_t last);

 private:
  Ledger::Impl::Block block(const void* addr, const malloc_type& mtp, std::uint64_t request,
                            const Place& allocated);
  void count_others(const Place& place);

  Kernel& kernel_;
  std::unique_ptr<Ledger> ledger_;
  Ledger::Impl& books_;
};

}  // namespace dtmalloc
