// SPDX-License-Identifier: BSD-2-Clause
// The bytes of a trace, with bounded memory.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kTail = 4096;  // of memory, which is copied so that its end may be overread
constexpr std::size_t kAlign = 16;

}  // namespace

// Records are read where they are, so they must lie as in a buffer.
TraceInput::TraceInput(std::string_view memory) : memory_(memory) {
  if (memory.size() < kBuffer || reinterpret_cast<std::uintptr_t>(memory.data()) % 8 != 0) return;
  in_memory_ = true;
  base_ = memory.data();
  size_ = memory.size() - kTail;
}

TraceInput::~TraceInput() {
  if (owned_) ::close(fd_);
}

std::string_view TraceInput::window(std::size_t least) {
  if (size_ - at_ < least && !ended_) fill(least);
  return {base_ + at_, size_ - at_};
}

void TraceInput::fill(std::size_t least) {
  std::size_t had = 0;  // bytes that go on, from a multiple of kAlign
  const std::size_t drop = at_ & ~(kAlign - 1);
  if (in_memory_) {
    memory_.remove_prefix(drop);
    in_memory_ = false;
  } else {
    had = size_ - drop;
    if (had != 0) std::memmove(buffer_.data(), base_ + drop, had);
  }
  before_ += drop;
  at_ -= drop;
  size_ = had;
  while (!ended_ && size_ < at_ + least) {
    const std::size_t capacity = buffer_.size() * sizeof(std::uint64_t);
    if (capacity < size_ + 2 * kWordSlack)
      buffer_.resize((std::max(2 * capacity, kBuffer) + kWordSlack) / sizeof(std::uint64_t));
    char* const to = reinterpret_cast<char*>(buffer_.data()) + size_;
    const std::size_t room = buffer_.size() * sizeof(std::uint64_t) - kWordSlack - size_;
    if (fd_ < 0) {
      const std::size_t copied = std::min(room, memory_.size());
      if (copied != 0) std::memcpy(to, memory_.data(), copied);
      memory_.remove_prefix(copied);
      size_ += copied;
      ended_ = memory_.empty();
      continue;
    }
    const ssize_t got = ::read(fd_, to, room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_ = errno;
    if (got <= 0) ended_ = true;
    size_ += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  if (buffer_.empty()) buffer_.resize(kWordSlack);
  base_ = reinterpret_cast<const char*>(buffer_.data());
  std::memset(reinterpret_cast<char*>(buffer_.data()) + size_, 0, kWordSlack);
}

}  // namespace dtmalloc::workload
