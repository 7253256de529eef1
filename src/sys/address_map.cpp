// SPDX-License-Identifier: BSD-2-Clause
// Host <-> simulated addresses: sorted, immutable snapshots, replaced as a whole.
//
// Locking:      mutex_ for writers; readers take the current snapshot and no lock. Old snapshots
//               live as long as the map, so a reader never loses the one it holds.
// Invariants:   ranges do not overlap, neither on the host nor in the simulated space.
#include <algorithm>
#include <dtmalloc/sys/address_map.hpp>
#include <dtmalloc/sys/error.hpp>

namespace dtmalloc {

struct AddressMap::Snapshot {
  std::vector<Range> by_simulated;
  std::vector<Range> by_host;
  std::vector<Range> holes;  // parts of readable ranges that are not, by simulated address

  static const Range* find_host(const std::vector<Range>& ranges, const std::byte* host) {
    auto next = std::upper_bound(ranges.begin(), ranges.end(), host,
                                 [](const std::byte* at, const Range& r) { return at < r.host; });
    if (next == ranges.begin()) return nullptr;
    const Range& range = *std::prev(next);
    return static_cast<std::size_t>(host - range.host) < range.size ? &range : nullptr;
  }
  static const Range* find_simulated(const std::vector<Range>& ranges, std::uint64_t at) {
    auto next =
        std::upper_bound(ranges.begin(), ranges.end(), at,
                         [](std::uint64_t value, const Range& r) { return value < r.simulated; });
    if (next == ranges.begin()) return nullptr;
    const Range& range = *std::prev(next);
    return at - range.simulated < range.size ? &range : nullptr;
  }
  // Takes [at, at + size) out of the holes.
  void fill(std::uint64_t at, std::size_t size) {
    std::vector<Range> rest;
    for (const Range& hole : holes) {
      const std::uint64_t end = hole.simulated + hole.size;
      if (end <= at || hole.simulated >= at + size) {
        rest.push_back(hole);
        continue;
      }
      if (hole.simulated < at)
        rest.push_back(
            {hole.simulated, nullptr, static_cast<std::size_t>(at - hole.simulated), false});
      if (end > at + size)
        rest.push_back({at + size, nullptr, static_cast<std::size_t>(end - at - size), false});
    }
    holes = std::move(rest);
  }
  void merge_holes() {
    std::vector<Range> merged;
    for (const Range& hole : holes) {
      if (!merged.empty() && merged.back().simulated + merged.back().size == hole.simulated)
        merged.back().size += hole.size;
      else
        merged.push_back(hole);
    }
    holes = std::move(merged);
  }
  void sort() {
    auto by_simulated_address = [](const Range& a, const Range& b) {
      return a.simulated < b.simulated;
    };
    std::sort(by_simulated.begin(), by_simulated.end(), by_simulated_address);
    std::sort(holes.begin(), holes.end(), by_simulated_address);
    merge_holes();
    by_host.clear();
    for (const Range& range : by_simulated) by_host.push_back(range);
    std::sort(by_host.begin(), by_host.end(),
              [](const Range& a, const Range& b) { return a.host < b.host; });
  }
};

AddressMap::AddressMap() {
  kept_.push_back(std::make_unique<Snapshot>());
  current_.store(kept_.back().get(), std::memory_order_release);
}

AddressMap::~AddressMap() = default;

void AddressMap::add(const Range& range) {
  if (range.size == 0) return;
  const std::lock_guard lock(mutex_);
  auto next = std::make_unique<Snapshot>(*current());
  next->by_simulated.push_back(range);
  next->sort();
  current_.store(next.get(), std::memory_order_release);
  kept_.push_back(std::move(next));
}

std::uint64_t AddressMap::add_data(const void* host, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(host);
  const std::lock_guard lock(mutex_);
  if (const Range* known = Snapshot::find_host(current()->by_host, begin);
      known != nullptr && known->readable && known->size >= size + (begin - known->host))
    return known->simulated + static_cast<std::uint64_t>(begin - known->host);
  auto next = std::make_unique<Snapshot>(*current());
  // What lies over an older, partly covered or retired range replaces it on the host's side.
  std::erase_if(next->by_simulated, [&](const Range& r) {
    return r.simulated >= kData && r.host < begin + size && begin < r.host + r.size;
  });
  const std::uint64_t at = next_data_;
  next_data_ += (size + 63) / 64 * 64;
  next->by_simulated.push_back({at, begin, size, true});
  next->sort();
  current_.store(next.get(), std::memory_order_release);
  kept_.push_back(std::move(next));
  return at;
}

void AddressMap::retire(const void* host) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_unique<Snapshot>(*current());
  for (Range& range : next->by_simulated)
    if (range.host == host) range.readable = false;
  next->sort();
  current_.store(next.get(), std::memory_order_release);
  kept_.push_back(std::move(next));
}

void AddressMap::retire(const std::vector<Part>& parts) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_unique<Snapshot>(*current());
  for (const Part& part : parts) {
    const auto* begin = static_cast<const std::byte*>(part.host);
    const Range* range = Snapshot::find_host(next->by_host, begin);
    if (range == nullptr || part.size == 0) continue;
    const std::uint64_t at = range->simulated + static_cast<std::uint64_t>(begin - range->host);
    next->fill(at, part.size);
    next->holes.push_back({at, nullptr, part.size, false});
  }
  next->sort();
  current_.store(next.get(), std::memory_order_release);
  kept_.push_back(std::move(next));
}

void AddressMap::restore(const void* host, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(host);
  const std::lock_guard lock(mutex_);
  auto next = std::make_unique<Snapshot>(*current());
  const Range* range = Snapshot::find_host(next->by_host, begin);
  if (range == nullptr) return;
  next->fill(range->simulated + static_cast<std::uint64_t>(begin - range->host), size);
  for (Range& known : next->by_simulated)
    if (known.host == begin) known.readable = true;
  next->sort();
  current_.store(next.get(), std::memory_order_release);
  kept_.push_back(std::move(next));
}

std::uint64_t AddressMap::to_simulated(const void* host) const {
  if (host == nullptr) return 0;
  const auto* at = static_cast<const std::byte*>(host);
  const Range* range = Snapshot::find_host(current()->by_host, at);
  if (range == nullptr) return kNoAddress;
  return range->simulated + static_cast<std::uint64_t>(at - range->host);
}

std::size_t AddressMap::readable_from(std::uint64_t simulated, const void** host) const {
  const Snapshot& now = *current();
  const Range* range = Snapshot::find_simulated(now.by_simulated, simulated);
  if (range == nullptr || !range->readable) return 0;
  if (Snapshot::find_simulated(now.holes, simulated) != nullptr) return 0;
  const std::uint64_t offset = simulated - range->simulated;
  std::size_t size = range->size - offset;
  auto hole =
      std::upper_bound(now.holes.begin(), now.holes.end(), simulated,
                       [](std::uint64_t value, const Range& r) { return value < r.simulated; });
  if (hole != now.holes.end()) size = std::min<std::size_t>(size, hole->simulated - simulated);
  if (host != nullptr) *host = range->host + offset;
  return size;
}

const void* AddressMap::to_host(std::uint64_t simulated, std::size_t size) const {
  const void* host = nullptr;
  return size != 0 && readable_from(simulated, &host) >= size ? host : nullptr;
}

}  // namespace dtmalloc
