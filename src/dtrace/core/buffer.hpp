// SPDX-License-Identifier: BSD-2-Clause
// A consumer's principal buffer on one CPU. Policy switch: the owner fills one half, the consumer
// reads the other. Policies fill and ring: one half holds the records until the end, the other is
// the scratch memory of firings.
// Counterpart:  dtrace_buffer_t
// Locking:      filled by the CPU's owner inside its critical section; the consumer's functions run
//               while the owner stands still (run_on_cpu).
// Invariants:   used <= size; a record begins with its EPID; EPID 0 is 4 bytes of padding.
//               A ring that has wrapped: records lie at [oldest, size) and [0, used),
//               used <= oldest. Otherwise at [0, used).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dtmalloc::dtrace {

// Zeroed memory that costs nothing until it is touched. Null when the host refuses.
std::byte* reserve_memory(std::size_t size);
void release_memory(std::byte* memory, std::size_t size);

// Reserved memory with its owner.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;
  ~ReservedMemory() { release_memory(data_, size_); }
  // Replaces what was there. False: the host refuses.
  bool reserve(std::size_t size);
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

inline constexpr std::uint32_t kRecordHeader = 12;  // EPID, timestamp in two halves
inline constexpr std::size_t kSmallestBuffer = 8;

enum class BufferPolicy : std::uint8_t { switch_, fill, ring };

// Who wants to know when a CPU fires, as bits: the consumer's passes, which rest while nothing
// fires; the deadman, once the consumer was not heard of.
enum class Wanted : std::uint8_t { passes = 1, deadman = 2 };

// Where a clause writes its record: a principal buffer or a CPU's part of a speculation.
struct RecordSpace {
  std::byte* active = nullptr;
  std::size_t used = 0;
};

struct PrincipalBuffer : RecordSpace {
  // What a firing may use without reserve(): the size under policy switch once it is on, else 0.
  // 0, too, while somebody wants to know of the next firing: `wanted` says who (Wanted).
  std::atomic<std::size_t> limit{0};
  std::atomic<std::uint8_t> wanted{0};
  std::size_t size = 0;
  std::uint64_t drops = 0;  // since the last take()
  std::byte* other = nullptr;
  BufferPolicy policy = BufferPolicy::switch_;
  bool on = false;  // off: nothing is recorded and no drop counted
  // fill: a record found no room; nothing more is recorded until END.
  std::atomic<bool> filled{false};
  bool ending = false;  // END may record
  bool wrapped = false;
  std::size_t oldest = 0;
  std::size_t kept_for_end = 0;  // fill: bytes that only END may use

  PrincipalBuffer() = default;
  PrincipalBuffer(const PrincipalBuffer&) = delete;
  PrincipalBuffer& operator=(const PrincipalBuffer&) = delete;
  ~PrincipalBuffer();
  // `bytes` is a multiple of 8.
  bool reserve(std::size_t bytes, BufferPolicy how = BufferPolicy::switch_);
  void turn_on();
  // The next firing comes to answer(). Any thread's. False: that was so already.
  bool want(Wanted who);
  // The owner's. False: nobody wanted to know.
  bool answer();

  // Room for `needed` bytes, aligned, where `limit` does not already grant it: where it starts. A
  // ring gives up its oldest records, whose sizes are `sizes[epid]`. False: the clause does not
  // run; a drop was counted if it is one.
  bool reserve(std::size_t needed, std::uint32_t alignment, const std::uint32_t* sizes,
               std::size_t* start);

  struct Taken {
    std::span<const std::byte> records, newer;  // `newer`: a ring's second part
    std::uint64_t drops = 0;
  };
  // Hands out what was recorded: under policy switch what came since the last call, valid until the
  // next; otherwise all there is.
  Taken take();

 private:
  void grant();
};

}  // namespace dtmalloc::dtrace
