// SPDX-License-Identifier: BSD-2-Clause
// The dynamic variable space of one consumer: thread variables and array elements.
//
// `dynvarsize` bytes hold a hash table and chunks of one size, as the kernel carves them, so that
// as many variables fit as there. A chunk is fresh, live, dirty (freed), rinsing, or clean; a freed
// one can be used again after two passes of the cleaner, so no firing that found it live still
// looks at it then.
//
// Counterpart:  dtrace_dstate_t, dtrace_dynvar(), dtrace_dynvar_clean()
// Locking:      a load takes no lock. Making and freeing a variable takes the lock word of its
//               bucket, for a few stores. Chunks come from the firing CPU's own lists, and from the
//               other CPUs' when those are empty. Everything shared is read and written as atomics.
//               clean() is called by one thread at a time, outside critical sections.
// Invariants:   a live chunk's name does not change; its link to the next of its bucket stays valid
//               until it is live again. Two live chunks never have the same name.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dtrace/core/buffer.hpp"
#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

class DynamicSpace {
 public:
  // Stores that found no chunk: by what there was instead of a clean one.
  struct Drops {
    std::uint64_t empty = 0;    // nothing: every chunk is live
    std::uint64_t rinsing = 0;  // chunks that the next pass makes clean
    std::uint64_t dirty = 0;    // chunks that the next pass rinses
  };

  // Carves `size` bytes (at least one chunk) into chunks of `chunk` bytes for `cpus` CPUs. False:
  // the host refuses, or there are no addresses for that much. Drops are counted for each of
  // `variables` variables of a scope, too.
  bool reserve(std::size_t size, std::size_t chunk, int cpus, std::size_t variables = 0);
  bool reserved() const { return chunks_ != 0; }
  std::size_t chunks() const { return chunks_; }
  std::size_t chunk_size() const { return chunk_; }
  std::size_t buckets() const { return buckets_; }
  Drops drops() const;
  Drops drops(Scope scope, std::uint32_t id) const;  // of one variable

  // One pass: what was rinsing is clean, what was dirty is rinsing. `synchronize` waits until every
  // firing that has begun is over. False: nothing is rinsing now.
  bool clean(const std::function<void()>& synchronize);
  // Called by every firing that makes a chunk dirty: a pass has to come.
  void when_dirty(std::function<void()> function) { when_dirty_ = std::move(function); }

 private:
  friend class DynamicCpu;

  struct alignas(64) Bucket {
    std::uint32_t lock;
    std::uint32_t head;  // a chunk's number; 0: none
  };
  // In front of a chunk's name and value; fits the kernel's own header.
  struct Header {
    std::uint64_t hash;
    std::uint32_t next;   // in the bucket
    std::uint32_t link;   // in a list of free chunks
    std::uint32_t words;  // of the name
    std::uint32_t size;   // bytes of the value
  };
  struct alignas(64) Lists {
    std::atomic<std::uint32_t> fresh{0};  // the next chunk that was never used
    std::uint32_t fresh_end = 0;
    std::atomic<std::uint32_t> clean{0};
    std::atomic<std::uint32_t> dirty{0};
    std::atomic<std::uint32_t> rinsing{0};  // the cleaner's own, but for who counts a drop
    std::atomic<std::uint64_t> drops[3]{};
  };
  static constexpr std::size_t kHeaderWords = sizeof(Header) / 8;

  Header& header(std::uint32_t number) const {
    return *reinterpret_cast<Header*>(chunk_bytes_ + std::size_t{number - 1} * chunk_);
  }
  std::uint64_t* words(std::uint32_t number) const {
    return reinterpret_cast<std::uint64_t*>(&header(number)) + kHeaderWords;
  }
  Bucket& bucket(std::uint64_t hash) const {
    return buckets_start_[static_cast<std::size_t>((hash >> 32) * buckets_ >> 32)];
  }
  std::uint32_t find(const Bucket& bucket, std::uint64_t hash, const std::uint64_t* name,
                     std::size_t count) const;
  std::uint32_t take(std::size_t cpu);  // 0: there is none
  std::uint32_t take_from(Lists& lists);
  void drop(std::size_t cpu, std::uint64_t variable);
  void free(std::size_t cpu, std::uint32_t number);

  ReservedMemory memory_;
  Bucket* buckets_start_ = nullptr;
  std::byte* chunk_bytes_ = nullptr;
  std::size_t buckets_ = 0, chunks_ = 0, chunk_ = 0;
  std::size_t lists_count_ = 0;
  std::unique_ptr<Lists[]> lists_;
  // By variable, that of a thread behind the global one of its number, and kind.
  std::vector<std::atomic<std::uint64_t>> drops_by_;
  std::function<void()> when_dirty_;
};

// One CPU's way into a space.
class DynamicCpu final : public DynamicVariables {
 public:
  DynamicCpu() = default;
  // False: the host refuses the memory.
  bool join(DynamicSpace& space, int cpu);

  bool find(std::size_t words, std::uint64_t* first, std::uint64_t* address) override;
  void store(std::size_t words, const std::uint64_t* data, std::size_t bytes,
             std::size_t size) override;
  void remove(std::size_t words) override;
  void drop() override { space_->drop(cpu_, *name); }
  std::size_t view(std::uint64_t address, const void** host) override;
  bool publish(const std::byte* from, std::size_t size) override;

 private:
  DynamicSpace* space_ = nullptr;
  std::size_t cpu_ = 0;
  ReservedMemory scratch_;  // name and value
  // What this CPU has read of values that are strings and structs, as far from its start as they
  // are from the first chunk.
  ReservedMemory view_;
};

}  // namespace dtmalloc::dtrace
