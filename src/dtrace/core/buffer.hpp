// SPDX-License-Identifier: BSD-2-Clause
// A consumer's principal buffer on one CPU, policy switch: the owner fills one half, the consumer
// reads the other.
// Counterpart:  dtrace_buffer_t
// Locking:      filled by the CPU's owner inside its critical section; exchange() runs while the
//               owner stands still (run_on_cpu).
// Invariants:   used <= size; a record begins with its EPID; EPID 0 is 4 bytes of padding.
#pragma once

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

struct PrincipalBuffer {
  std::byte* active = nullptr;
  std::size_t used = 0;
  std::size_t size = 0;
  std::uint64_t drops = 0;  // since the last exchange
  std::byte* other = nullptr;

  PrincipalBuffer() = default;
  PrincipalBuffer(const PrincipalBuffer&) = delete;
  PrincipalBuffer& operator=(const PrincipalBuffer&) = delete;
  ~PrincipalBuffer();
  bool reserve(std::size_t bytes);

  struct Taken {
    std::span<const std::byte> records;
    std::uint64_t drops = 0;
  };
  // Hands out what was recorded; valid until the next exchange.
  Taken exchange();
};

}  // namespace dtmalloc::dtrace
