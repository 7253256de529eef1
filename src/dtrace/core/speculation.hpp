// SPDX-License-Identifier: BSD-2-Clause
// Speculations: what clauses record until it is known whether it is wanted.
//
// A speculation has a part on every CPU. One that was used on one CPU only is committed or
// discarded at once by that CPU; of the others every CPU's part waits for the cleaner.
//
// Counterpart:  dtrace_speculation_t, dtrace_speculation_*
// Locking:      a state changes by compare-and-swap only. A part belongs to its CPU's owner, inside
//               the critical section; the cleaner stops the CPU.
// Invariants:   in `active_one` exactly one part has records once its first record is complete; in
//               `inactive`, `active` and `committing` (of another CPU) no part has any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dtrace/core/buffer.hpp"

namespace dtmalloc::dtrace {

enum class SpecState : std::uint8_t {
  inactive,
  active,       // given out by speculation(), not used yet
  active_one,   // used on one CPU
  active_many,  // used on several
  committing,
  committing_many,  // the other CPUs' parts wait for the cleaner
  discarding,       // ditto
};

// What one CPU recorded into one speculation.
struct SpecPart : RecordSpace {
  std::uint64_t drops = 0;  // records that did not fit; they count once it is committed
};

// The parts of one CPU.
class SpecParts {
 public:
  // `size` bytes each, a multiple of 8; 0: nothing is recorded.
  bool reserve(std::size_t count, std::size_t size);
  SpecPart& operator[](std::size_t i) const {
    return reinterpret_cast<SpecPart*>(parts_.data())[i];
  }
  // Room for a record. Null: none, a drop was counted.
  std::byte* room(std::size_t i, std::size_t needed, std::uint32_t alignment, std::size_t* start);

  std::uint64_t dropped = 0;  // of what was committed; only grows

 private:
  ReservedMemory parts_;   // SpecPart[count]
  ReservedMemory memory_;  // count * size_
  std::size_t size_ = 0;
};

// The speculations of a consumer.
class Speculations {
 public:
  bool reserve(std::size_t count);
  std::size_t count() const { return count_; }
  // Those from here on were never taken.
  std::size_t ever_taken() const { return ever_taken_.load(std::memory_order_acquire); }

  // speculation(): an id from 1, or 0.
  std::uint32_t take();
  // speculate(id): whether this CPU may record into its part.
  bool use(std::size_t i, const SpecPart& part);
  // commit(id) by the CPU whose part this is; no: there is nothing to do. `at_once`: the
  // speculation is inactive after settle(), else the cleaner is needed.
  bool commit(std::size_t i, const SpecPart& part, bool* at_once);
  void settle(std::size_t i);
  // discard(id): whether the part is to be emptied; `at_once`: the speculation is inactive.
  bool discard(std::size_t i, const SpecPart& part, bool* at_once);

  SpecState state(std::size_t i) const { return states()[i].load(std::memory_order_acquire); }
  // Every CPU has been cleaned of this speculation.
  void cleaned(std::size_t i) { set(i, SpecState::inactive); }

  std::uint64_t busy() const { return busy_.load(std::memory_order_relaxed); }
  std::uint64_t unavailable() const { return unavailable_.load(std::memory_order_relaxed); }

 private:
  std::atomic<SpecState>* states() const {
    return reinterpret_cast<std::atomic<SpecState>*>(memory_.data());
  }
  void set(std::size_t i, SpecState to) { states()[i].store(to, std::memory_order_release); }
  // From the state that was seen; false: it has changed, and `seen` is what it is.
  bool move(std::size_t i, SpecState* seen, SpecState to) {
    return states()[i].compare_exchange_strong(*seen, to, std::memory_order_acq_rel);
  }
  ReservedMemory memory_;
  std::size_t count_ = 0;
  std::atomic<std::size_t> ever_taken_{0};
  std::atomic<std::uint64_t> busy_{0}, unavailable_{0};
};

}  // namespace dtmalloc::dtrace
