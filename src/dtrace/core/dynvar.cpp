// SPDX-License-Identifier: BSD-2-Clause
// The dynamic variable space: lookup, the lists of chunks, the cleaner.
// Counterpart:  dtrace.c (dtrace_dynvar, dtrace_dynvar_clean, dtrace_dstate_init)
#include "dtrace/core/dynvar.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace dtmalloc::dtrace {
namespace {

constexpr std::size_t kDefaultChunk = 256;
constexpr std::size_t kDropEmpty = 0, kDropRinsing = 1, kDropDirty = 2, kDropKinds = 3;

// Of the first counter of a variable.
std::size_t drop_index(std::uint32_t id, bool thread) {
  return (2 * std::size_t{id - kVarUser} + (thread ? 1 : 0)) * kDropKinds;
}

template <typename T>
T read(const T& from, std::memory_order order = std::memory_order_relaxed) {
  return std::atomic_ref(const_cast<T&>(from)).load(order);
}
template <typename T>
void write(T& to, T value, std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref(to).store(value, order);
}

// Names are short: a multiplication a word, and one more that brings the high bits together.
std::uint64_t hash_of(const std::uint64_t* name, std::size_t count) {
  std::uint64_t hash = count;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ name[i]) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash * 0xd6e8feb86659fd93;
}

// The lock word of a bucket. Its holder is inside a critical section and does a few stores.
class BucketLock {
 public:
  explicit BucketLock(std::uint32_t& word) : word_(word) {
    constexpr int kSpins = 200;  // before the holder is taken for one that the host has put aside
    for (int spins = 0;; ++spins) {
      std::uint32_t free = 0;
      if (word_.compare_exchange_weak(free, 1, std::memory_order_acquire)) return;
      if (spins > kSpins) std::this_thread::yield();
    }
  }
  ~BucketLock() { word_.store(0, std::memory_order_release); }
  BucketLock(const BucketLock&) = delete;
  BucketLock& operator=(const BucketLock&) = delete;

 private:
  std::atomic_ref<std::uint32_t> word_;
};

}  // namespace

bool DynamicSpace::reserve(std::size_t size, std::size_t chunk, int cpus, std::size_t variables) {
  chunks_ = 0;
  if (chunk == 0) chunk = kDefaultChunk;
  if (size < chunk || size - chunk < sizeof(Bucket)) size = chunk + sizeof(Bucket);
  buckets_ = size / (chunk + sizeof(Bucket));
  if (buckets_ != 1) buckets_ &= ~std::size_t{1};
  const std::size_t room = size - buckets_ * sizeof(Bucket);
  if (room > kConsumerEnd - kDynamicBase || room / chunk > 0xffffffff) return false;
  if (!memory_.reserve(size)) return false;
  chunk_ = chunk;
  buckets_start_ = reinterpret_cast<Bucket*>(memory_.data());
  chunk_bytes_ = memory_.data() + buckets_ * sizeof(Bucket);
  lists_count_ = static_cast<std::size_t>(cpus);
  lists_ = std::make_unique<Lists[]>(lists_count_);
  // The same number for each CPU, what is left over for the last; too few for all: for the first.
  const std::size_t chunks = room / chunk;
  const std::size_t each = room / lists_count_ / chunk;
  std::size_t given = 0;
  for (std::size_t i = 0; i < lists_count_ && given < chunks; ++i) {
    const bool last = each == 0 || i + 1 == lists_count_;
    const std::size_t end = last ? chunks : given + each;
    lists_[i].fresh.store(static_cast<std::uint32_t>(given + 1), std::memory_order_relaxed);
    lists_[i].fresh_end = static_cast<std::uint32_t>(end + 1);
    given = end;
  }
  drops_by_ = std::vector<std::atomic<std::uint64_t>>(2 * variables * kDropKinds);
  chunks_ = chunks;
  return true;
}

DynamicSpace::Drops DynamicSpace::drops() const {
  Drops sum;
  for (std::size_t i = 0; i < lists_count_; ++i) {
    const auto& drops = lists_[i].drops;
    sum.empty += drops[kDropEmpty].load(std::memory_order_relaxed);
    sum.rinsing += drops[kDropRinsing].load(std::memory_order_relaxed);
    sum.dirty += drops[kDropDirty].load(std::memory_order_relaxed);
  }
  return sum;
}

DynamicSpace::Drops DynamicSpace::drops(Scope scope, std::uint32_t id) const {
  const std::size_t at = drop_index(id, scope == Scope::thread);
  if (scope == Scope::local || at >= drops_by_.size()) return {};
  const auto of = [&](std::size_t kind) {
    return drops_by_[at + kind].load(std::memory_order_relaxed);
  };
  return {of(kDropEmpty), of(kDropRinsing), of(kDropDirty)};
}

std::uint32_t DynamicSpace::find(const Bucket& bucket, std::uint64_t hash,
                                 const std::uint64_t* name, std::size_t count) const {
  std::uint32_t number = read(bucket.head, std::memory_order_acquire);
  while (number != 0) {
    const Header& found = header(number);
    if (read(found.hash) == hash && read(found.words) == count) {
      const std::uint64_t* had = words(number);
      std::size_t i = 0;
      while (i < count && read(had[i]) == name[i]) ++i;
      if (i == count) return number;
    }
    number = read(found.next, std::memory_order_acquire);
  }
  return 0;
}

// A chunk popped here comes back only after every firing that has begun is over, so the head that
// was read is the same chunk when it is exchanged.
std::uint32_t DynamicSpace::take_from(Lists& lists) {
  std::uint32_t number = lists.clean.load(std::memory_order_acquire);
  while (number != 0) {
    const std::uint32_t next = read(header(number).link);
    if (lists.clean.compare_exchange_weak(number, next, std::memory_order_acquire)) return number;
  }
  number = lists.fresh.load(std::memory_order_relaxed);
  while (number < lists.fresh_end) {
    if (lists.fresh.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) {
      return number;
    }
  }
  return 0;
}

std::uint32_t DynamicSpace::take(std::size_t cpu) {
  for (std::size_t i = 0; i < lists_count_; ++i) {
    const std::size_t from = cpu + i < lists_count_ ? cpu + i : cpu + i - lists_count_;
    if (const std::uint32_t number = take_from(lists_[from]); number != 0) return number;
  }
  return 0;
}

// `variable`: the first word of a name.
void DynamicSpace::drop(std::size_t cpu, std::uint64_t variable) {
  std::size_t kind = kDropEmpty;
  for (std::size_t i = 0; i < lists_count_ && kind != kDropRinsing; ++i) {
    if (lists_[i].dirty.load(std::memory_order_relaxed) != 0) kind = kDropDirty;
    if (lists_[i].rinsing.load(std::memory_order_relaxed) != 0) kind = kDropRinsing;
  }
  lists_[cpu].drops[kind].fetch_add(1, std::memory_order_relaxed);
  const std::size_t at = drop_index(static_cast<std::uint32_t>(variable >> 32), variable & 1);
  if (at < drops_by_.size()) drops_by_[at + kind].fetch_add(1, std::memory_order_relaxed);
}

void DynamicSpace::free(std::size_t cpu, std::uint32_t number) {
  std::atomic<std::uint32_t>& dirty = lists_[cpu].dirty;
  std::uint32_t head = dirty.load(std::memory_order_relaxed);
  do {
    write(header(number).link, head);
  } while (!dirty.compare_exchange_weak(head, number));
  if (when_dirty_) when_dirty_();
}

bool DynamicSpace::clean(const std::function<void()>& synchronize) {
  bool rinses = false;
  for (std::size_t i = 0; i < lists_count_; ++i) {
    Lists& lists = lists_[i];
    if (const std::uint32_t first = lists.rinsing.load(std::memory_order_relaxed); first != 0) {
      lists.rinsing.store(0, std::memory_order_relaxed);
      std::uint32_t last = first;
      while (read(header(last).link) != 0) last = read(header(last).link);
      std::uint32_t head = lists.clean.load(std::memory_order_relaxed);
      do {
        write(header(last).link, head);
      } while (!lists.clean.compare_exchange_weak(head, first, std::memory_order_release));
    }
    const std::uint32_t dirty = lists.dirty.exchange(0);
    lists.rinsing.store(dirty, std::memory_order_relaxed);
    rinses = rinses || dirty != 0;
  }
  if (rinses) synchronize();
  return rinses;
}

bool DynamicCpu::join(DynamicSpace& space, int cpu) {
  space_ = &space;
  cpu_ = static_cast<std::size_t>(cpu) % space.lists_count_;
  capacity = space.chunk_ / 8 + 1;
  if (!scratch_.reserve(2 * capacity * 8)) return false;
  name = reinterpret_cast<std::uint64_t*>(scratch_.data());
  value = name + capacity;
  return view_.reserve(space.chunks_ * space.chunk_);
}

bool DynamicCpu::find(std::size_t words, std::uint64_t* first, std::uint64_t* address) {
  const std::uint64_t hash = hash_of(name, words);
  const std::uint32_t number = space_->find(space_->bucket(hash), hash, name, words);
  if (number == 0) return false;
  const std::uint64_t* data = space_->words(number) + words;
  *first = read(*data);
  *address = kDynamicBase + static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(data) -
                                                       space_->chunk_bytes_);
  return true;
}

void DynamicCpu::store(std::size_t words, const std::uint64_t* data, std::size_t bytes,
                       std::size_t size) {
  const std::uint64_t hash = hash_of(name, words);
  DynamicSpace::Bucket& bucket = space_->bucket(hash);
  const std::size_t count = (bytes + 7) / 8;
  std::uint32_t number = space_->find(bucket, hash, name, words);
  if (number == 0) {
    if ((DynamicSpace::kHeaderWords + words) * 8 + ((size + 7) & ~std::size_t{7}) >
        space_->chunk_) {
      return drop();
    }
    const BucketLock lock(bucket.lock);
    number = space_->find(bucket, hash, name, words);
    if (number == 0) {
      number = space_->take(cpu_);
      if (number == 0) return drop();
      DynamicSpace::Header& made = space_->header(number);
      std::uint64_t* to = space_->words(number);
      write(made.hash, hash);
      write(made.words, static_cast<std::uint32_t>(words));
      write(made.size, static_cast<std::uint32_t>(size));
      for (std::size_t i = 0; i < words; ++i) write(to[i], name[i]);
      for (std::size_t i = 0; i < count; ++i) write(to[words + i], data[i]);
      write(made.next, read(bucket.head));
      write(bucket.head, number, std::memory_order_release);
      return;
    }
  }
  std::uint64_t* to = space_->words(number) + words;
  for (std::size_t i = 0; i < count; ++i) write(to[i], data[i]);
}

void DynamicCpu::remove(std::size_t words) {
  const std::uint64_t hash = hash_of(name, words);
  DynamicSpace::Bucket& bucket = space_->bucket(hash);
  if (space_->find(bucket, hash, name, words) == 0) return;
  std::uint32_t number = 0;
  {
    const BucketLock lock(bucket.lock);
    number = space_->find(bucket, hash, name, words);
    if (number == 0) return;
    std::uint32_t* to = &bucket.head;
    while (read(*to) != number) to = &space_->header(read(*to)).next;
    write(*to, read(space_->header(number).next), std::memory_order_release);
  }
  space_->free(cpu_, number);
}

std::size_t DynamicCpu::view(std::uint64_t address, const void** host) {
  const std::uint64_t at = address - kDynamicBase;
  if (address < kDynamicBase || at >= space_->chunks_ * space_->chunk_) return 0;
  const std::size_t chunk = at / space_->chunk_;
  const std::size_t inside = at % space_->chunk_;
  const DynamicSpace::Header& header = space_->header(static_cast<std::uint32_t>(chunk + 1));
  const std::size_t start = (DynamicSpace::kHeaderWords + read(header.words)) * 8;
  const std::size_t end = std::min(start + read(header.size), space_->chunk_);
  if (inside < start || inside >= end) return 0;
  auto* seen = view_.data() + at;
  *host = seen;
  const std::size_t skip = inside % 8;
  const std::size_t count = (end - inside + skip + 7) / 8;
  const auto* from = reinterpret_cast<const std::uint64_t*>(space_->chunk_bytes_ + at - skip);
  auto* to = reinterpret_cast<std::uint64_t*>(seen - skip);
  for (std::size_t i = 0; i < count; ++i) to[i] = read(from[i]);
  return end - inside;
}

bool DynamicCpu::publish(const std::byte* from, std::size_t size) {
  const std::byte* base = view_.data();
  if (from < base || from >= base + space_->chunks_ * space_->chunk_) return false;
  const auto at = static_cast<std::size_t>(from - base);
  const std::size_t skip = at % 8;
  const std::size_t count = (size + skip + 7) / 8;
  const auto* seen = reinterpret_cast<const std::uint64_t*>(from - skip);
  auto* to = reinterpret_cast<std::uint64_t*>(space_->chunk_bytes_ + at - skip);
  for (std::size_t i = 0; i < count; ++i) write(to[i], seen[i]);
  return true;
}

}  // namespace dtmalloc::dtrace
