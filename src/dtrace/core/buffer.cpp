// SPDX-License-Identifier: BSD-2-Clause
// Principal buffers: memory, room for a record, what the consumer takes.
// Counterpart:  dtrace.c (dtrace_buffer_*)
#include "dtrace/core/buffer.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace dtmalloc::dtrace {

std::byte* reserve_memory(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

void release_memory(std::byte* memory, std::size_t size) {
  if (memory != nullptr) munmap(memory, size);
}

bool ReservedMemory::reserve(std::size_t size) {
  release_memory(data_, size_);
  data_ = size > 0 ? reserve_memory(size) : nullptr;
  size_ = data_ != nullptr ? size : 0;
  return size == size_;
}

PrincipalBuffer::~PrincipalBuffer() {
  release_memory(active, size);
  release_memory(other, size);
}

bool PrincipalBuffer::reserve(std::size_t bytes, BufferPolicy how) {
  active = reserve_memory(bytes);
  other = reserve_memory(bytes);
  if (active == nullptr || other == nullptr) {
    release_memory(active, bytes);
    release_memory(other, bytes);
    active = other = nullptr;
    return false;
  }
  size = bytes;
  policy = how;
  return true;
}

void PrincipalBuffer::turn_on() {
  on = size > 0;
  grant();
}

void PrincipalBuffer::grant() {
  limit.store(on && policy == BufferPolicy::switch_ ? size : 0, std::memory_order_relaxed);
}

bool PrincipalBuffer::want(Wanted who) {
  const auto bit = static_cast<std::uint8_t>(who);
  const bool news = (wanted.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
  limit.store(0, std::memory_order_relaxed);
  return news;
}

bool PrincipalBuffer::answer() {
  if (wanted.load(std::memory_order_relaxed) == 0) return false;
  wanted.exchange(0, std::memory_order_acq_rel);
  grant();
  return true;
}

bool PrincipalBuffer::reserve(std::size_t needed, std::uint32_t alignment,
                              const std::uint32_t* sizes, std::size_t* start) {
  if (!on) return false;
  *start = (used + alignment - 1) & ~std::size_t{alignment - 1};
  const bool fits = needed <= size && *start <= size - needed;
  switch (policy) {
    case BufferPolicy::switch_:
      if (!fits) ++drops;
      return fits;
    case BufferPolicy::fill:
      if (filled.load(std::memory_order_relaxed) && !ending) return false;
      if (fits && *start + needed <= size - (ending ? 0 : kept_for_end)) return true;
      filled.store(true, std::memory_order_relaxed);
      return false;
    case BufferPolicy::ring:
      break;
  }
  if (needed > size) {
    ++drops;
    return false;
  }
  if (!fits) {
    // It goes on at the start; what lies between here and the end is given up.
    std::memset(active + used, 0, size - used);
    *start = used = oldest = 0;
    wrapped = true;
  }
  if (!wrapped) return true;
  while (oldest < size && oldest < *start + needed) {
    std::uint32_t epid = 0;
    std::memcpy(&epid, active + oldest, sizeof epid);
    oldest += epid == 0 ? sizeof epid : sizes[epid];
  }
  if (oldest >= size) {
    wrapped = false;
    oldest = 0;
  }
  return true;
}

PrincipalBuffer::Taken PrincipalBuffer::take() {
  Taken taken{{active, used}, {}, drops};
  drops = 0;
  if (policy == BufferPolicy::switch_) {
    std::swap(active, other);
    used = 0;
  } else if (wrapped) {
    taken.newer = taken.records;
    taken.records = {active + oldest, size - oldest};
  }
  return taken;
}

}  // namespace dtmalloc::dtrace
