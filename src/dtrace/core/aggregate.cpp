// SPDX-License-Identifier: BSD-2-Clause
// Aggregating functions and the per-CPU hash.
// Counterpart:  dtrace.c (dtrace_aggregate_*, dtrace_aggregate)
// Locking:      find() runs inside the owner's critical section: it neither allocates nor locks.
#include "dtrace/core/aggregate.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "dtrace/core/buffer.hpp"

namespace dtmalloc::dtrace {
namespace {

using uint128 = unsigned __int128;

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

uint128 squares(const std::int64_t* data) {
  return static_cast<uint128>(static_cast<std::uint64_t>(data[3])) << 64 |
         static_cast<std::uint64_t>(data[2]);
}

void set_squares(std::int64_t* data, uint128 value) {
  data[2] = static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
  data[3] = static_cast<std::int64_t>(static_cast<std::uint64_t>(value >> 64));
}

}  // namespace

AggSpec AggSpec::of(const AggregationDesc& desc) {
  AggSpec spec;
  spec.id = desc.id;
  spec.function = desc.function;
  switch (desc.function) {
    case AggFunction::count:
    case AggFunction::sum:
    case AggFunction::min:
    case AggFunction::max:
      break;
    case AggFunction::avg:
      spec.words = 2;
      break;
    case AggFunction::stddev:
      spec.words = 4;
      break;
    case AggFunction::quantize:
      spec.words = kQuantizeBuckets;
      break;
    case AggFunction::lquantize:
      spec.base = desc.base;
      spec.step = std::max<std::uint32_t>(desc.step, 1);
      spec.levels = static_cast<std::uint32_t>((static_cast<std::int64_t>(desc.limit) - desc.base) /
                                               spec.step);
      spec.words = spec.levels + 2;
      break;
    case AggFunction::llquantize:
      spec.factor = desc.factor;
      spec.low = desc.low;
      spec.high = desc.high;
      spec.nsteps = desc.nsteps;
      spec.words = static_cast<std::uint32_t>(llquantize_bounds(spec).size()) + 1;
      break;
  }
  return spec;
}

std::int64_t quantize_bucket_value(int bucket) {
  if (bucket == kQuantizeZero) return 0;
  if (bucket > kQuantizeZero) return std::int64_t{1} << (bucket - kQuantizeZero - 1);
  return -(std::int64_t{1} << (kQuantizeZero - bucket - 1));
}

std::uint32_t lquantize_bucket(const AggSpec& spec, std::int64_t value) {
  const std::int64_t cut = static_cast<std::int32_t>(value);
  if (cut < spec.base) return 0;
  const std::int64_t level = (cut - spec.base) / spec.step;
  return level < spec.levels ? static_cast<std::uint32_t>(level) + 1 : spec.levels + 1;
}

// Each order of magnitude [factor^m, factor^(m+1)) is cut into steps of factor^(m+1) / nsteps, but
// never below 1; the steps that lie under factor^m belong to the order before.
std::vector<std::int64_t> llquantize_bounds(const AggSpec& spec) {
  std::vector<std::int64_t> bounds;
  std::int64_t lower = 1;
  for (int order = 0; order < spec.low; ++order) lower *= spec.factor;
  for (int order = spec.low; order <= spec.high; ++order) {
    const std::int64_t upper = lower * spec.factor;
    const std::int64_t step = upper > spec.nsteps ? upper / spec.nsteps : 1;
    for (std::int64_t bound = lower; bound < upper; bound += step) bounds.push_back(bound);
    lower = upper;
  }
  bounds.push_back(lower);
  return bounds;
}

std::uint32_t llquantize_bucket(const AggSpec& spec, std::int64_t value) {
  std::int64_t lower = 1;
  for (int order = 0; order < spec.low; ++order) lower *= spec.factor;
  if (value < lower) return 0;
  std::uint32_t first = 1;
  for (int order = spec.low; order <= spec.high; ++order) {
    const std::int64_t upper = lower * spec.factor;
    const std::int64_t step = upper > spec.nsteps ? upper / spec.nsteps : 1;
    if (value < upper) return first + static_cast<std::uint32_t>((value - lower) / step);
    first += static_cast<std::uint32_t>((upper - lower) / step);
    lower = upper;
  }
  return first;
}

void aggregate_start(const AggSpec& spec, std::int64_t* data) {
  std::fill_n(data, spec.words, 0);
  if (spec.function == AggFunction::min) data[0] = std::numeric_limits<std::int64_t>::max();
  if (spec.function == AggFunction::max) data[0] = std::numeric_limits<std::int64_t>::min();
}

void aggregate_value(const AggSpec& spec, std::int64_t* data, std::int64_t value,
                     std::int64_t increment) {
  switch (spec.function) {
    case AggFunction::count:
      data[0] = wrapping_add(data[0], 1);
      break;
    case AggFunction::sum:
      data[0] = wrapping_add(data[0], value);
      break;
    case AggFunction::min:
      data[0] = std::min(data[0], value);
      break;
    case AggFunction::max:
      data[0] = std::max(data[0], value);
      break;
    case AggFunction::avg:
      data[0] = wrapping_add(data[0], 1);
      data[1] = wrapping_add(data[1], value);
      break;
    case AggFunction::stddev: {
      data[0] = wrapping_add(data[0], 1);
      data[1] = wrapping_add(data[1], value);
      const std::uint64_t magnitude =
          value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
      set_squares(data, squares(data) + static_cast<uint128>(magnitude) * magnitude);
      break;
    }
    case AggFunction::quantize:
      data[quantize_bucket(value)] = wrapping_add(data[quantize_bucket(value)], increment);
      break;
    case AggFunction::lquantize: {
      std::int64_t& bucket = data[lquantize_bucket(spec, value)];
      bucket = wrapping_add(bucket, increment);
      break;
    }
    case AggFunction::llquantize: {
      std::int64_t& bucket = data[llquantize_bucket(spec, value)];
      bucket = wrapping_add(bucket, increment);
      break;
    }
  }
}

void aggregate_combine(const AggSpec& spec, std::int64_t* data, const std::int64_t* other) {
  switch (spec.function) {
    case AggFunction::min:
      data[0] = std::min(data[0], other[0]);
      return;
    case AggFunction::max:
      data[0] = std::max(data[0], other[0]);
      return;
    case AggFunction::stddev:
      data[0] = wrapping_add(data[0], other[0]);
      data[1] = wrapping_add(data[1], other[1]);
      set_squares(data, squares(data) + squares(other));
      return;
    default:
      for (std::uint32_t i = 0; i < spec.words; ++i) data[i] = wrapping_add(data[i], other[i]);
      return;
  }
}

std::uint32_t hash_key(std::uint32_t aggregation, const std::byte* key, std::size_t size) {
  std::uint64_t hash = aggregation * 0x9e3779b97f4a7c15ull + size;
  while (size >= 8) {
    std::uint64_t word;
    std::memcpy(&word, key, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
    key += 8;
    size -= 8;
  }
  if (size > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, key, size);
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 29);
}

// --- AggBuffer

constexpr std::size_t kMostBytes = 0xfffffff8;  // offsets are 32 bits wide

// Followed by the key, padded to 8 bytes, and the data.
struct AggBuffer::Node {
  std::uint32_t next;  // offset of the next node of the bucket; 0: none
  std::uint32_t hash;
  std::uint32_t aggregation;
  std::uint32_t key_size;
  std::uint32_t words;
  std::uint32_t spare;

  static std::size_t padded(std::size_t key_size) { return (key_size + 7) & ~std::size_t{7}; }
  std::byte* key() { return reinterpret_cast<std::byte*>(this + 1); }
  std::int64_t* data() { return reinterpret_cast<std::int64_t*>(key() + padded(key_size)); }
  std::size_t bytes() const { return element_bytes(key_size, words); }
};

std::size_t AggBuffer::element_bytes(std::size_t key_size, std::uint32_t words) {
  return sizeof(Node) + Node::padded(key_size) + words * std::size_t{8};
}

// One bucket for 64 to 128 bytes, as far as a pass may empty them all.
std::uint32_t AggBuffer::buckets_of(std::size_t size) {
  constexpr std::uint32_t kMostBuckets = 1U << 16;
  std::uint32_t buckets = 1;
  while (buckets < size / 128 && buckets < kMostBuckets) buckets *= 2;
  return buckets;
}

std::size_t AggBuffer::room(std::size_t size) {
  size = std::min(size, kMostBytes);
  const std::size_t start = first_node(buckets_of(size));
  return size > start ? size - start : 0;
}

AggBuffer::~AggBuffer() {
  release_memory(active_.memory, size_);
  release_memory(other_.memory, size_);
}

bool AggBuffer::reserve(std::size_t bytes) {
  bytes = std::min(bytes, kMostBytes);
  active_.memory = reserve_memory(bytes);
  other_.memory = reserve_memory(bytes);
  if (active_.memory == nullptr || other_.memory == nullptr) {
    release_memory(active_.memory, bytes);
    release_memory(other_.memory, bytes);
    active_.memory = other_.memory = nullptr;
    return false;
  }
  size_ = bytes;
  buckets_ = buckets_of(bytes);
  active_.used = other_.used = first_node(buckets_);
  return true;
}

std::int64_t* AggBuffer::find(const AggSpec& spec, const std::byte* key, std::uint32_t key_size,
                              Hint* hint) {
  const auto is = [&](Node& node) {
    return node.key_size == key_size &&
           (key_size == 0 || std::memcmp(node.key(), key, key_size) == 0);
  };
  if (hint != nullptr && hint->generation == generation_) {
    auto* node = reinterpret_cast<Node*>(active_.memory + hint->at);
    if (is(*node)) return node->data();
  }
  const auto found = [&](std::uint32_t at) {
    std::int64_t* data = reinterpret_cast<Node*>(active_.memory + at)->data();
    if (hint != nullptr) {
      const auto offset = reinterpret_cast<std::byte*>(data) - active_.memory;
      *hint = {at, static_cast<std::uint32_t>(offset), generation_};
    }
    return data;
  };
  const auto dropped = [&]() -> std::int64_t* {
    if (hint != nullptr) *hint = {};
    ++drops;
    return nullptr;
  };
  if (active_.memory == nullptr) return dropped();
  const std::uint32_t hash = hash_key(spec.id, key, key_size);
  std::uint32_t* head = heads(active_) + (hash & (buckets_ - 1));
  for (std::uint32_t at = *head; at != 0;) {
    auto* node = reinterpret_cast<Node*>(active_.memory + at);
    if (node->hash == hash && node->aggregation == spec.id && is(*node)) return found(at);
    at = node->next;
  }
  const std::size_t need = element_bytes(key_size, spec.words);
  if (active_.used + need > size_) return dropped();
  auto* node = reinterpret_cast<Node*>(active_.memory + active_.used);
  node->next = *head;
  node->hash = hash;
  node->aggregation = spec.id;
  node->key_size = key_size;
  node->words = spec.words;
  node->spare = 0;
  std::memcpy(node->key(), key, key_size);
  aggregate_start(spec, node->data());
  *head = static_cast<std::uint32_t>(active_.used);
  active_.used += need;
  active_.touched = true;
  return found(*head);
}

void AggBuffer::clear(Half& half) const {
  if (!half.touched) return;
  const std::size_t start = first_node(buckets_);
  std::memset(half.memory, 0, start);
  half.used = start;
  half.touched = false;
}

void AggBuffer::exchange() {
  if (active_.memory == nullptr) return;
  clear(other_);
  std::swap(active_, other_);
  ++generation_;
}

void AggBuffer::visit(const std::function<void(const Element&)>& function) const {
  if (other_.memory == nullptr || !other_.touched) return;
  for (std::size_t at = first_node(buckets_); at < other_.used;) {
    auto* node = reinterpret_cast<Node*>(other_.memory + at);
    function({node->aggregation, {node->key(), node->key_size}, node->data()});
    at += node->bytes();
  }
}

}  // namespace dtmalloc::dtrace
