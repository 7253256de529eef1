// SPDX-License-Identifier: BSD-2-Clause
// Host address <-> simulated kernel address, for what D programs print and dereference.
//
// A range maps linearly. Outside the ranges an address does not exist: a load there is BADADDR.
// After retire() the range stays mapped for printing but is unreadable (the graveyard of unloaded
// types).
//
// Example:
//   map.add({AddressMap::kArena, arena, size, true});
//   std::uint64_t sim = map.to_simulated(item);                   // 0xfffff80000012340
//   const void* host = map.to_host(sim, 8);                       // nullptr: BADADDR
//
// Errors:        add_data() yields kNoAddress when the region of data is full.
// Thread safety: what changes the map takes a lock; look-ups take none and may run beside it.
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
  static constexpr std::uint64_t kArena = 0xfffff80000000000;     // kmem and the direct map
  static constexpr std::uint64_t kPerCpu = 0xfffffe0000000000;    // statistics columns
  static constexpr std::uint64_t kMemguard = 0xfffffe8000000000;  // guarded blocks
  static constexpr std::uint64_t kData = 0xffffffff81000000;      // types, names, user's objects
  static constexpr std::uint64_t kDataRegion = std::uint64_t{64} << 20;  // room for add_data()
  static constexpr std::uint64_t kZones = kData + 2 * kDataRegion;       // zones, to be named only

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
  // Places `size` bytes of the host at the next free address of the kData region; returns it. What
  // lies in a range that is known stays there; what was retired comes back where it was.
  std::uint64_t add_data(const void* host, std::size_t size);
  // Undoes one add() or add_data() of what lies at `host`: after the last one it is unreadable.
  void retire(const void* host);
  void remove(const void* host);  // the range at `host` is no more, not even to be printed
  // Parts of ranges, made unreadable in place.
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
  // What %p prints: the simulated address; for what lies outside all ranges its distance from the
  // arena, from kArena on, so that an address computed from a block's repeats.
  std::uint64_t to_printed(const void* host) const;
  // Host address of [simulated, simulated + size), or nullptr unless all of it is readable.
  const void* to_host(std::uint64_t simulated, std::size_t size) const;
  // Readable bytes from `simulated` on (0: none), for strings.
  std::size_t readable_from(std::uint64_t simulated, const void** host) const;
  // Readable bytes with `simulated` among them; size 0: it is not readable.
  struct Readable {
    std::uint64_t begin = 0;
    std::size_t size = 0;
    const std::byte* host = nullptr;
  };
  Readable readable_around(std::uint64_t simulated) const;
  // Changes whenever memory becomes unreadable or comes back: while it stays, what was read of
  // memory that nobody writes can be read again. Never 0.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  struct Entry;
  struct Table;
  struct Change;
  const Table* current() const { return current_.load(std::memory_order_acquire); }
  void append(const Range& range);
  Entry* at_host(const void* host);
  std::atomic<const Table*> current_{nullptr};
  std::atomic<std::uint64_t> generation_{1};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is current
  std::vector<std::unique_ptr<Entry>> entries_;
  std::uint64_t next_data_ = kData;
};

}  // namespace dtmalloc
