// SPDX-License-Identifier: BSD-2-Clause
// Aggregations: the functions, and the hash of one CPU in which a clause adds up.
//
// A key is the concatenation of its elements: integers in their recorded size, strings with their
// NUL, other bytes as they are. So equal keys are equal bytes, and the descriptions of the elements
// take it apart again.
//
// Counterpart:  dtrace_aggregation_t, dtrace_aggbuffer_t
// Locking:      as buffer.hpp.
// Invariants:   combining is commutative and associative: the order of CPUs does not matter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dtrace/dif/program.hpp"

namespace dtmalloc::dtrace {

inline constexpr int kQuantizeBuckets = 127;
inline constexpr int kQuantizeZero = 63;  // index of the bucket of value 0

// What a firing needs to know of an aggregation.
struct AggSpec {
  std::uint32_t id = 0;
  AggFunction function = AggFunction::count;
  std::uint32_t words = 1;  // of 8 bytes, per element
  std::int32_t base = 0;
  std::uint32_t step = 1, levels = 0;
  std::uint16_t factor = 0, low = 0, high = 0, nsteps = 0;

  static AggSpec of(const AggregationDesc& desc);
};

// The value of quantize()'s bucket: an element lies between its bucket's value and zero's side of
// the next.
std::int64_t quantize_bucket_value(int bucket);
inline int quantize_bucket(std::int64_t value) {
  if (value == 0) return kQuantizeZero;
  const std::uint64_t magnitude =
      value > 0 ? static_cast<std::uint64_t>(value) : -static_cast<std::uint64_t>(value);
  const int bits = std::min(64 - __builtin_clzll(magnitude), kQuantizeZero);
  return value > 0 ? kQuantizeZero + bits : kQuantizeZero - bits;
}
std::uint32_t lquantize_bucket(const AggSpec& spec, std::int64_t value);
std::uint32_t llquantize_bucket(const AggSpec& spec, std::int64_t value);
// The lower bound of llquantize()'s bucket, from bucket 1 on.
std::vector<std::int64_t> llquantize_bounds(const AggSpec& spec);

void aggregate_start(const AggSpec& spec, std::int64_t* data);
void aggregate_value(const AggSpec& spec, std::int64_t* data, std::int64_t value,
                     std::int64_t increment);
// data += other, as the function defines it.
void aggregate_combine(const AggSpec& spec, std::int64_t* data, const std::int64_t* other);

std::uint32_t hash_key(std::uint32_t aggregation, const std::byte* key, std::size_t size);

// One CPU's elements, bounded by the option aggsize.
class AggBuffer {
 public:
  AggBuffer() = default;
  AggBuffer(const AggBuffer&) = delete;
  AggBuffer& operator=(const AggBuffer&) = delete;
  ~AggBuffer();
  bool reserve(std::size_t bytes);
  std::size_t size() const { return size_; }
  // What elements may take of a buffer of that size, and what one of them takes.
  static std::size_t room(std::size_t size);
  static std::size_t element_bytes(std::size_t key_size, std::uint32_t words);

  // Where one user of one aggregation found its last element: the same key needs no search.
  struct Hint {
    std::uint32_t at = 0;
    std::uint32_t data = 0;        // offset of the data
    std::uint64_t generation = 0;  // of the half it lies in
  };
  // Whether the half is still the same, and the data of the element found before if it is.
  bool holds(const Hint& hint) const { return hint.generation == generation_; }
  std::uint64_t generation() const { return generation_; }
  std::int64_t* hinted(const Hint& hint) const {
    return reinterpret_cast<std::int64_t*>(active_.memory + hint.data);
  }
  // The element's data, made when it is new; null: no room.
  std::int64_t* find(const AggSpec& spec, const std::byte* key, std::uint32_t key_size,
                     Hint* hint = nullptr);

  // What was aggregated since the last exchange; valid until the next.
  struct Element {
    std::uint32_t aggregation;
    std::span<const std::byte> key;
    const std::int64_t* data;
  };
  // Call while the owner stands still; then read with visit() at leisure.
  void exchange();
  void visit(const std::function<void(const Element&)>& function) const;

  std::uint64_t drops = 0;  // written by the owner; only grows

 private:
  struct Node;
  struct Half {
    std::byte* memory = nullptr;  // bucket heads, then nodes
    std::size_t used = 0;
    bool touched = false;
  };
  std::uint32_t* heads(Half& half) const { return reinterpret_cast<std::uint32_t*>(half.memory); }
  void clear(Half& half) const;
  static std::uint32_t buckets_of(std::size_t size);
  static std::size_t first_node(std::uint32_t buckets) {
    return std::max<std::size_t>(buckets * std::size_t{4}, 8);
  }

  Half active_, other_;
  std::size_t size_ = 0;
  std::uint32_t buckets_ = 0;  // a power of two
  std::uint64_t generation_ = 1;
};

}  // namespace dtmalloc::dtrace
