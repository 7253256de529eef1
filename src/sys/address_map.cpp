// SPDX-License-Identifier: BSD-2-Clause
// Host <-> simulated addresses: sorted tables of ranges, and for each range the bytes not readable.
//
// Locking:      mutex_ for writers; readers take none. A table is never changed but for its tails,
//               to which ranges are appended; full ones make a new table. Old tables and ranges
//               live as long as the map, so a reader never loses what it holds. Whether a byte is
//               readable changes in place.
// Invariants:   live ranges do not overlap, neither on the host nor in the simulated space.
#include <algorithm>
#include <array>
#include <bit>
#include <dtmalloc/sys/address_map.hpp>
#include <dtmalloc/sys/error.hpp>
#include <utility>

namespace dtmalloc {
namespace {

constexpr std::size_t kTail = 64;      // ranges appended before the table is made anew
constexpr std::size_t kChunk = 16384;  // bytes of a range that one block of bits covers
constexpr std::size_t kChunkWords = kChunk / 64;
constexpr std::uint64_t kSmallest = 0x10000;  // below lies no object of a host

std::uint64_t value_of(const void* host) { return reinterpret_cast<std::uintptr_t>(host); }

// The bytes of one range that cannot be read, a bit each, in blocks that are made when needed.
class Holes {
 public:
  explicit Holes(std::size_t size) : chunks_((size + kChunk - 1) / kChunk) {}
  ~Holes() {
    for (const auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }
  // Requires: mutex_ held.
  void set(std::size_t from, std::size_t size, bool hole) {
    for (const std::size_t to = from + size; from < to;) {
      const std::size_t bit = from % 64;
      const std::size_t count = std::min(to - from, 64 - bit);
      const std::uint64_t mask = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1)
                                 << bit;
      std::atomic<Chunk*>& slot = chunks_[from / kChunk];
      Chunk* chunk = slot.load(std::memory_order_relaxed);
      if (chunk == nullptr && hole) {
        chunk = new Chunk{};
        slot.store(chunk, std::memory_order_release);
      }
      if (chunk != nullptr) {
        std::atomic<std::uint64_t>& word = (*chunk)[from % kChunk / 64];
        if (hole)
          word.fetch_or(mask, std::memory_order_release);
        else
          word.fetch_and(~mask, std::memory_order_release);
      }
      from += count;
    }
  }
  // The first hole in [from, to), or `to`.
  std::size_t next(std::size_t from, std::size_t to) const {
    while (from < to) {
      const Chunk* chunk = chunks_[from / kChunk].load(std::memory_order_acquire);
      if (chunk == nullptr) {
        from = (from / kChunk + 1) * kChunk;
        continue;
      }
      const std::uint64_t word =
          (*chunk)[from % kChunk / 64].load(std::memory_order_acquire) >> (from % 64);
      if (word != 0) return std::min(to, from + static_cast<std::size_t>(std::countr_zero(word)));
      from = (from / 64 + 1) * 64;
    }
    return to;
  }

 private:
  using Chunk = std::array<std::atomic<std::uint64_t>, kChunkWords>;
  std::vector<std::atomic<Chunk*>> chunks_;
};

}  // namespace

struct AddressMap::Entry {
  explicit Entry(const Range& given) : range(given), readable(given.readable) {}
  ~Entry() { delete holes.load(std::memory_order_relaxed); }
  const Range range;
  std::atomic<bool> readable;
  std::atomic<bool> gone{false};  // something else lies there now
  std::atomic<Holes*> holes{nullptr};
  int users = 1;  // add_data() calls that retire() has not undone
};

struct AddressMap::Table {
  struct Row {
    std::uint64_t begin, size;
    const Entry* entry;
    bool holds(std::uint64_t at) const { return at - begin < size; }
    const Entry* live() const {
      return entry->gone.load(std::memory_order_acquire) ? nullptr : entry;
    }
  };
  // By simulated or by host addresses.
  struct Rows {
    std::vector<Row> sorted;
    std::array<Row, kTail> tail{};
  };
  Rows by_simulated, by_host;
  std::atomic<std::size_t> tail_size{0};

  const Entry* find(const Rows& rows, std::uint64_t at) const {
    const auto next =
        std::upper_bound(rows.sorted.begin(), rows.sorted.end(), at,
                         [](std::uint64_t value, const Row& r) { return value < r.begin; });
    if (next != rows.sorted.begin() && std::prev(next)->holds(at))
      if (const Entry* entry = std::prev(next)->live()) return entry;
    const std::size_t size = tail_size.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < size; ++i)
      if (rows.tail[i].holds(at))
        if (const Entry* entry = rows.tail[i].live()) return entry;
    return nullptr;
  }
  const Entry* find_host(std::uint64_t at) const { return find(by_host, at); }
  const Entry* find_simulated(std::uint64_t at) const { return find(by_simulated, at); }
  static Row simulated_row(const Entry& entry) {
    return {entry.range.simulated, entry.range.size, &entry};
  }
  static Row host_row(const Entry& entry) {
    return {value_of(entry.range.host), entry.range.size, &entry};
  }
};

AddressMap::AddressMap() {
  tables_.push_back(std::make_unique<Table>());
  current_.store(tables_.back().get(), std::memory_order_release);
}

AddressMap::~AddressMap() = default;

// Requires: mutex_ held.
void AddressMap::append(const Range& range) {
  entries_.push_back(std::make_unique<Entry>(range));
  Table& now = *tables_.back();
  const std::size_t used = now.tail_size.load(std::memory_order_relaxed);
  if (used < kTail) {
    now.by_simulated.tail[used] = Table::simulated_row(*entries_.back());
    now.by_host.tail[used] = Table::host_row(*entries_.back());
    now.tail_size.store(used + 1, std::memory_order_release);
    return;
  }
  auto next = std::make_unique<Table>();
  for (const auto& entry : entries_) {
    if (entry->gone.load(std::memory_order_relaxed)) continue;
    next->by_simulated.sorted.push_back(Table::simulated_row(*entry));
    next->by_host.sorted.push_back(Table::host_row(*entry));
  }
  for (Table::Rows* rows : {&next->by_simulated, &next->by_host})
    std::sort(rows->sorted.begin(), rows->sorted.end(),
              [](const Table::Row& a, const Table::Row& b) { return a.begin < b.begin; });
  current_.store(next.get(), std::memory_order_release);
  tables_.push_back(std::move(next));
}

// The map changes while one of these lives.
struct AddressMap::Change {
  explicit Change(AddressMap& map) : map(map) {}
  ~Change() { map.generation_.fetch_add(1, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  AddressMap& map;
};

// Requires: mutex_ held.
AddressMap::Entry* AddressMap::at_host(const void* host) {
  return const_cast<Entry*>(current()->find_host(value_of(host)));
}

void AddressMap::add(const Range& range) {
  if (range.size == 0) return;
  const std::lock_guard lock(mutex_);
  const Change change(*this);
  append(range);
}

std::uint64_t AddressMap::add_data(const void* host, std::size_t size) {
  const std::uint64_t begin = value_of(host);
  const std::lock_guard lock(mutex_);
  const Change change(*this);
  Entry* known = at_host(host);
  if (known != nullptr) {
    const std::uint64_t offset = begin - value_of(known->range.host);
    const bool same = offset == 0 && known->range.size == size;
    if (known->readable.load(std::memory_order_relaxed) ? known->range.size >= size + offset
                                                        : same) {
      ++known->users;
      known->readable.store(true, std::memory_order_release);
      return known->range.simulated + offset;
    }
  }
  const std::uint64_t room = (size + 63) / 64 * 64;
  if (room > kData + kDataRegion - next_data_) return kNoAddress;
  // What lies over an older, partly covered or retired range replaces it, and serves its users.
  int users = 0;
  for (const auto& entry : entries_) {
    const Range& range = entry->range;
    if (range.simulated < kData || entry->gone.load(std::memory_order_relaxed)) continue;
    if (value_of(range.host) >= begin + size || begin >= value_of(range.host) + range.size)
      continue;
    users += entry->users;
    entry->gone.store(true, std::memory_order_release);
  }
  append({next_data_, static_cast<const std::byte*>(host), size, true});
  entries_.back()->users += users;
  return std::exchange(next_data_, next_data_ + room);
}

void AddressMap::retire(const void* host) {
  const std::lock_guard lock(mutex_);
  const Change change(*this);
  Entry* entry = at_host(host);
  if (entry == nullptr || entry->users == 0) return;
  if (--entry->users == 0) entry->readable.store(false, std::memory_order_release);
}

void AddressMap::remove(const void* host) {
  const std::lock_guard lock(mutex_);
  const Change change(*this);
  if (Entry* entry = at_host(host)) entry->gone.store(true, std::memory_order_release);
}

void AddressMap::retire(const std::vector<Part>& parts) {
  const std::lock_guard lock(mutex_);
  const Change change(*this);
  for (const Part& part : parts) {
    Entry* entry = at_host(part.host);
    if (entry == nullptr) continue;
    Holes* holes = entry->holes.load(std::memory_order_relaxed);
    if (holes == nullptr) {
      holes = new Holes(entry->range.size);
      entry->holes.store(holes, std::memory_order_release);
    }
    const std::size_t from = value_of(part.host) - value_of(entry->range.host);
    holes->set(from, std::min(part.size, entry->range.size - from), true);
  }
}

void AddressMap::restore(const void* host, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const Change change(*this);
  Entry* entry = at_host(host);
  if (entry == nullptr) return;
  const std::size_t from = value_of(host) - value_of(entry->range.host);
  if (Holes* holes = entry->holes.load(std::memory_order_relaxed))
    holes->set(from, std::min(size, entry->range.size - from), false);
  if (from != 0) return;
  if (entry->users == 0) entry->users = 1;
  entry->readable.store(true, std::memory_order_release);
}

std::uint64_t AddressMap::to_simulated(const void* host) const {
  if (host == nullptr) return 0;
  const Entry* entry = current()->find_host(value_of(host));
  if (entry == nullptr) return kNoAddress;
  return entry->range.simulated + (value_of(host) - value_of(entry->range.host));
}

std::uint64_t AddressMap::to_printed(const void* host) const {
  const std::uint64_t known = to_simulated(host);
  if (known != kNoAddress) return known;
  const Entry* arena = current()->find_simulated(kArena);
  if (value_of(host) < kSmallest || arena == nullptr) return value_of(host);
  return kArena + (value_of(host) - value_of(arena->range.host));
}

AddressMap::Readable AddressMap::readable_around(std::uint64_t simulated) const {
  const Entry* entry = current()->find_simulated(simulated);
  if (entry == nullptr || !entry->readable.load(std::memory_order_acquire)) return {};
  const Range& range = entry->range;
  const Holes* holes = entry->holes.load(std::memory_order_acquire);
  if (holes == nullptr) return {range.simulated, range.size, range.host};
  const std::uint64_t offset = simulated - range.simulated;
  return {simulated, holes->next(offset, range.size) - offset, range.host + offset};
}

std::size_t AddressMap::readable_from(std::uint64_t simulated, const void** host) const {
  const Readable around = readable_around(simulated);
  if (around.size == 0) return 0;
  const std::uint64_t offset = simulated - around.begin;
  if (host != nullptr) *host = around.host + offset;
  return around.size - offset;
}

const void* AddressMap::to_host(std::uint64_t simulated, std::size_t size) const {
  const void* host = nullptr;
  return size != 0 && readable_from(simulated, &host) >= size ? host : nullptr;
}

}  // namespace dtmalloc
