// SPDX-License-Identifier: BSD-2-Clause
// The states of speculations, and what consumers do with them in a firing and at the cleaner's
// pass. Counterpart:  dtrace.c (dtrace_speculation*)
#include "dtrace/core/speculation.hpp"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "dtrace/core/consumer.hpp"

namespace dtmalloc::dtrace {

bool SpecParts::reserve(std::size_t count, std::size_t size) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
  if (count > kMost / sizeof(SpecPart) || (size != 0 && count > kMost / size)) return false;
  if (!parts_.reserve(count * sizeof(SpecPart)) || !memory_.reserve(count * size)) return false;
  size_ = size;
  return true;
}

std::byte* SpecParts::room(std::size_t i, std::size_t needed, std::uint32_t alignment,
                           std::size_t* start) {
  SpecPart& part = (*this)[i];
  *start = (part.used + alignment - 1) & ~std::size_t{alignment - 1};
  if (needed > size_ || *start > size_ - needed) {
    ++part.drops;
    return nullptr;
  }
  part.active = memory_.data() + i * size_;
  return part.active + *start;
}

bool Speculations::reserve(std::size_t count) {
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  static_assert(static_cast<int>(SpecState::inactive) == 0 && sizeof(std::atomic<SpecState>) == 1);
  if (!memory_.reserve(count)) return false;
  count_ = count;
  return true;
}

std::uint32_t Speculations::take() {
  bool busy = false;
  for (std::size_t i = 0; i < count_; ++i) {
    SpecState seen = state(i);
    if (seen == SpecState::inactive && move(i, &seen, SpecState::active)) {
      std::size_t taken = ever_taken();
      while (taken <= i && !ever_taken_.compare_exchange_weak(taken, i + 1)) {
      }
      return static_cast<std::uint32_t>(i + 1);
    }
    busy = busy || seen >= SpecState::committing;
  }
  (busy ? busy_ : unavailable_).fetch_add(1, std::memory_order_relaxed);
  return 0;
}

bool Speculations::use(std::size_t i, const SpecPart& part) {
  SpecState seen = state(i);
  while (true) {
    SpecState to = SpecState::active_one;
    switch (seen) {
      case SpecState::active:
        break;
      case SpecState::active_one:
        // Records here: this is the CPU that uses it. None: another one is.
        if (part.used != 0) return true;
        to = SpecState::active_many;
        break;
      case SpecState::active_many:
        return true;
      case SpecState::inactive:
      case SpecState::committing:
      case SpecState::committing_many:
      case SpecState::discarding:
        return false;
    }
    if (move(i, &seen, to)) return true;
  }
}

bool Speculations::commit(std::size_t i, const SpecPart& part, bool* at_once) {
  SpecState seen = state(i);
  while (true) {
    SpecState to = SpecState::committing_many;
    switch (seen) {
      case SpecState::active:
        to = SpecState::committing;
        break;
      case SpecState::active_one:
        if (part.used != 0) to = SpecState::committing;
        break;
      case SpecState::active_many:
        break;
      case SpecState::committing_many:
        *at_once = false;
        return true;
      case SpecState::inactive:
      case SpecState::committing:
      case SpecState::discarding:
        return false;
    }
    if (!move(i, &seen, to)) continue;
    *at_once = to == SpecState::committing;
    return true;
  }
}

void Speculations::settle(std::size_t i) { set(i, SpecState::inactive); }

bool Speculations::discard(std::size_t i, const SpecPart& part, bool* at_once) {
  SpecState seen = state(i);
  while (true) {
    SpecState to = SpecState::discarding;
    switch (seen) {
      case SpecState::active_one:
        if (part.used != 0) to = SpecState::inactive;
        break;
      case SpecState::active:
      case SpecState::active_many:
        break;
      case SpecState::inactive:
      case SpecState::committing:
      case SpecState::committing_many:
      case SpecState::discarding:
        return false;
    }
    if (!move(i, &seen, to)) continue;
    *at_once = to == SpecState::inactive;
    return true;
  }
}

// --- a consumer's side

namespace {

bool valid(std::uint32_t id, const Speculations& all) { return id >= 1 && id <= all.count(); }

}  // namespace

std::byte* Consumer::speculate(const Ecb& ecb, ConsumerCpu& state, std::uint32_t id,
                               RecordSpace** space, std::size_t* start) {
  if (!valid(id, speculations_)) return nullptr;
  SpecPart& part = state.speculative[id - 1];
  if (!speculations_.use(id - 1, part)) return nullptr;
  std::byte* record = state.speculative.room(id - 1, ecb.needed, ecb.alignment, start);
  *space = &part;
  return record;
}

bool Consumer::commit(ConsumerCpu& state, std::uint32_t id) {
  if (id == 0) return true;
  if (!valid(id, speculations_)) return false;
  SpecPart& part = state.speculative[id - 1];
  bool at_once = false;
  if (!speculations_.commit(id - 1, part, &at_once)) return true;
  copy_committed(state, part);
  if (at_once) {
    speculations_.settle(id - 1);
  } else {
    cleaner_.request();
  }
  return true;
}

// Appends the part's records to the principal buffer with the time of the commit.
void Consumer::copy_committed(ConsumerCpu& state, SpecPart& part) {
  if (state.buffer.answer()) framework_.cpus.clock().rouse(watch_);
  owner_add(state.speculative.dropped, part.drops);
  part.drops = 0;
  const std::size_t bytes = std::exchange(part.used, 0);
  if (bytes == 0) return;
  PrincipalBuffer& buffer = state.buffer;
  const std::uint32_t* sizes = record_sizes();
  std::size_t start = 0;
  if (!buffer.reserve(bytes, 8, sizes, &start)) return;
  const std::uint64_t now = framework_.cpus.clock().now();
  for (std::size_t at = 0; at < bytes;) {
    std::uint32_t epid = 0;
    std::memcpy(&epid, part.active + at, sizeof epid);
    if (epid == 0) {
      at += sizeof epid;
      continue;
    }
    std::memcpy(part.active + at + 4, &now, sizeof now);
    at += sizes[epid];
  }
  std::memset(buffer.active + buffer.used, 0, start - buffer.used);
  std::memcpy(buffer.active + start, part.active, bytes);
  buffer.used = start + bytes;
}

bool Consumer::discard(ConsumerCpu& state, std::uint32_t id) {
  if (id == 0) return true;
  if (!valid(id, speculations_)) return false;
  SpecPart& part = state.speculative[id - 1];
  bool at_once = false;
  if (!speculations_.discard(id - 1, part, &at_once)) return true;
  // Who takes the speculation anew uses the part of another CPU.
  part.used = 0;
  part.drops = 0;
  if (!at_once) cleaner_.request();
  return true;
}

void Consumer::clean_speculations() {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < speculations_.ever_taken(); ++i) {
    const SpecState state = speculations_.state(i);
    if (state == SpecState::discarding || state == SpecState::committing_many) waiting.push_back(i);
  }
  if (waiting.empty()) return;
  for (int id = 0; id < framework_.cpus.count(); ++id) {
    ConsumerCpu* state = cpus_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
    if (state == nullptr) continue;
    framework_.cpus.run_on_cpu(framework_.cpus.cpu(id), [&] {
      for (const std::size_t i : waiting) {
        SpecPart& part = state->speculative[i];
        if (speculations_.state(i) == SpecState::committing_many) {
          copy_committed(*state, part);
        } else {
          part.used = 0;
          part.drops = 0;
        }
      }
    });
  }
  for (const std::size_t i : waiting) speculations_.cleaned(i);
}

}  // namespace dtmalloc::dtrace
