// SPDX-License-Identifier: BSD-2-Clause
// Principal buffers: memory and the exchange of the two halves.
// Counterpart:  dtrace.c (dtrace_buffer_*)
#include "dtrace/core/buffer.hpp"

#include <sys/mman.h>

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

bool PrincipalBuffer::reserve(std::size_t bytes) {
  active = reserve_memory(bytes);
  other = reserve_memory(bytes);
  if (active == nullptr || other == nullptr) {
    release_memory(active, bytes);
    release_memory(other, bytes);
    active = other = nullptr;
    return false;
  }
  size = bytes;
  return true;
}

PrincipalBuffer::Taken PrincipalBuffer::exchange() {
  const Taken taken{{active, used}, drops};
  std::swap(active, other);
  used = 0;
  drops = 0;
  return taken;
}

}  // namespace dtmalloc::dtrace
