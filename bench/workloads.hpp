// SPDX-License-Identifier: BSD-2-Clause
// The loops that allocators are compared in, one instance for each kind of call. An operation is
// one malloc and one free; unless said, the first 8 bytes of the block are written in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dtmalloc/kern/inline.hpp>
#include <dtmalloc/kernel.hpp>
#include <vector>

#include "contest.hpp"
#include "peers.hpp"

namespace dtmalloc::bench {

// malloc(9) through pointers that the compiler does not see through.
struct KernelCalls {
  void* (*malloc_function)(std::size_t, malloc_type*, int);
  void (*free_function)(void*, malloc_type*);
  void* allocate(std::size_t size, malloc_type* type) const {
    return malloc_function(size, type, kM_NOWAIT);
  }
  void release(void* block, malloc_type* type) const { free_function(block, type); }
};

// The same code inlined into the loops.
struct InlinedCalls {
  void* allocate(std::size_t size, malloc_type* type) const {
    return inline_malloc(size, type, kM_NOWAIT);
  }
  void release(void* block, malloc_type* type) const { inline_free(block, type); }
};

struct PeerCalls {
  void* (*malloc_function)(std::size_t);
  void (*free_function)(void*);
  void* allocate(std::size_t size, malloc_type*) const { return malloc_function(size); }
  void release(void* block, malloc_type*) const { free_function(block); }
};

// Keeps the compiler from knowing a value.
template <class T>
T opaque(T value) {
  __asm__ volatile("" : "+r"(value));
  return value;
}

inline KernelCalls kernel_calls() { return {opaque(&kern_malloc), opaque(&kern_free)}; }
inline KernelCalls kernel_calls_without_hooks() {
  return {opaque(&kern_malloc_nohooks), opaque(&kern_free_nohooks)};
}
inline PeerCalls peer_calls(const Peer& peer) {
  return {opaque(peer.allocate), opaque(peer.release)};
}

// The harness alone.
inline std::uint64_t null_block[16];
__attribute__((noinline)) inline void* null_malloc(std::size_t, malloc_type*, int) {
  __asm__ volatile("");
  return null_block;
}
__attribute__((noinline)) inline void null_free(void*, malloc_type*) { __asm__ volatile(""); }
inline KernelCalls null_calls() { return {opaque(&null_malloc), opaque(&null_free)}; }

inline void touch(void* block, std::uint64_t value) {
  *static_cast<volatile std::uint64_t*>(block) = value;
}

template <class Calls>
void tight_pairs(const Calls calls, std::size_t size, malloc_type* type, std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) {
    void* block = calls.allocate(size, type);
    touch(block, i);
    calls.release(block, type);
  }
}

// How large the blocks of a random workload are, from a random word.
struct UpTo1K {  // 8 to 1024 bytes, each as likely
  std::size_t operator()(std::uint64_t word) const { return 8 + ((word & 0xffff) * 1017 >> 16); }
};
struct UpTo64K {  // 16 to 63488 bytes, each power of two as likely
  std::size_t operator()(std::uint64_t word) const {
    return (16 + (word & 15)) << (((word >> 4 & 0xfff) * 12) >> 12);
  }
};

// Live blocks, of which a random one is replaced: what a pair costs when what it needs is not what
// was used last. Each block has a random one of the types.
class RandomLive {
 public:
  RandomLive(std::size_t blocks, std::vector<malloc_type*> types, std::uint64_t seed = 1)
      : types_(std::move(types)), blocks_(blocks), kinds_(blocks), random_(seed) {}

  // Fills the table when it is empty.
  template <class Sizes, class Calls>
  void fill(const Calls calls, const Sizes sizes) {
    if (blocks_[0] != nullptr) return;
    for (std::size_t slot = 0; slot < blocks_.size(); ++slot) {
      const std::uint64_t word = random_.next();
      kinds_[slot] = kind_of(word);
      blocks_[slot] = calls.allocate(sizes(word), types_[kinds_[slot]]);
      touch(blocks_[slot], slot);
    }
  }

  template <bool Write, class Sizes, class Calls>
  void replace(const Calls calls, const Sizes sizes, std::size_t pairs) {
    for (std::size_t i = 0; i < pairs; ++i) step<Write>(calls, sizes, i);
  }

  template <bool Write, class Sizes, class Calls>
  __attribute__((always_inline)) void step(const Calls& calls, const Sizes& sizes, std::size_t i) {
    const std::uint64_t word = random_.next();
    const std::size_t slot = (word >> 32) * blocks_.size() >> 32;
    calls.release(blocks_[slot], types_[kinds_[slot]]);
    const std::uint16_t kind = kind_of(word);
    kinds_[slot] = kind;
    void* block = calls.allocate(sizes(word), types_[kind]);
    blocks_[slot] = block;
    if (Write) touch(block, i);
  }

 private:
  std::uint16_t kind_of(std::uint64_t word) const {
    return static_cast<std::uint16_t>((word >> 16 & 0xffffff) * types_.size() >> 24);
  }
  std::vector<malloc_type*> types_;
  std::vector<void*> blocks_;
  std::vector<std::uint16_t> kinds_;
  Random random_;
};

enum class Order { fifo, lifo };

// 1000 blocks, then all of them freed; of one size, or of random ones up to 1 KiB.
template <Order kOrder, bool kRandom>
class Batch {
 public:
  explicit Batch(malloc_type* type) : type_(type), blocks_(kBlocks) {}
  template <class Calls>
  void run(const Calls calls, std::size_t pairs) {
    while (pairs > 0) {
      const std::size_t count = std::min(pairs, kBlocks);
      for (std::size_t i = 0; i < count; ++i) {
        blocks_[i] = calls.allocate(kRandom ? UpTo1K()(random_.next()) : 64, type_);
        touch(blocks_[i], i);
      }
      for (std::size_t i = 0; i < count; ++i)
        calls.release(blocks_[kOrder == Order::fifo ? i : count - 1 - i], type_);
      pairs -= count;
    }
  }
  static constexpr std::size_t kBlocks = 1000;

 private:
  malloc_type* type_;
  std::vector<void*> blocks_;
  Random random_{3};
};

}  // namespace dtmalloc::bench
