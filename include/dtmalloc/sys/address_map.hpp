// SPDX-License-Identifier: BSD-2-Clause
// Host address <-> simulated kernel address, for what D programs print and dereference.
//
// A range maps linearly. Outside the ranges an address does not exist: a load there is BADADDR.
// After retire() the range stays mapped for printing but is unreadable (the graveyard of unloaded
// types).
//
// Example:
//   map.add({AddressMap::kArena, arena, size, "kmem"});
//   std::uint64_t sim = map.to_simulated(item);                   // 0xfffff80000012340
//   const void* host = map.to_host(sim, 8);                       // nullptr: BADADDR
//
// Thread safety: add() and retire() take a lock; look-ups take none and may run beside them.
// Source:        src/README.md, "addresses in D".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dtmalloc {

class AddressMap {
 public:
  // Bases of the regions, apart enough never to meet.
  static constexpr std::uint64_t kArena = 0xfffff80000000000;   // kmem and the direct map
  static constexpr std::uint64_t kPerCpu = 0xfffffe0000000000;  // statistics columns
  static constexpr std::uint64_t kData = 0xffffffff81000000;    // types, names, user's objects

  struct Range {
    std::uint64_t simulated = 0;
    const std::byte* host = nullptr;
    std::size_t size = 0;
    bool readable = true;
  };

  AddressMap();
  ~AddressMap();
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  void add(const Range& range);
  // Places `size` bytes of the host at the next free address of the kData region; returns it.
  std::uint64_t add_data(const void* host, std::size_t size);
  void retire(const void* host);  // the range that begins at `host`
  // Parts of ranges. Neighbours that are retired become one hole, so their number stays small.
  struct Part {
    const void* host;
    std::size_t size;
  };
  void retire(const std::vector<Part>& parts);
  void restore(const void* host, std::size_t size);  // undoes it for a part, or a part of one

  // The simulated address of a host address inside a range; 0 for null; other host addresses are
  // not shown: they yield kNoAddress.
  static constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};
  std::uint64_t to_simulated(const void* host) const;
  // Host address of [simulated, simulated + size), or nullptr unless all of it is readable.
  const void* to_host(std::uint64_t simulated, std::size_t size) const;
  // Readable bytes from `simulated` on (0: none), for strings.
  std::size_t readable_from(std::uint64_t simulated, const void** host) const;

 private:
  struct Snapshot;
  const Snapshot* current() const { return current_.load(std::memory_order_acquire); }
  std::atomic<const Snapshot*> current_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Snapshot>> kept_;
  std::uint64_t next_data_ = kData;
};

}  // namespace dtmalloc
