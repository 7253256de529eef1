// SPDX-License-Identifier: BSD-2-Clause
// DEBUG_MEMGUARD: chosen blocks get pages of their own between unmapped ones, and are unmapped when
// they are freed.
//
// Counterpart:  sys/vm/memguard.c
// Locking:      `mutex` guards the map, what `desc` says and the random numbers; counters are
//               atomic
// Invariants:   MG-1: a mapped page belongs to exactly one block; MG-2: `mapused` is the sum of the
//               blocks' address space, guard pages included
// Differs:      a page's contents lie in the map's own host memory; the page of the arena that
// backs
//               it is only taken out of the supply
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "vm/vm.hpp"

namespace dtmalloc {

inline constexpr int MG_GUARD_AROUND = 0x1;
inline constexpr int MG_GUARD_ALLLARGE = 0x2;
inline constexpr int MG_GUARD_NOFREE = 0x4;
inline constexpr std::size_t kMemguardDescBytes = 128;  // with its NUL

struct MemguardConfig {
  std::string desc;
  std::uint64_t divisor = 10;
  int options = MG_GUARD_AROUND;
  std::uint32_t frequency = 0;
  std::uint64_t kmem_size = 0;
  std::uint64_t seed = 1;
};

struct Memguard {
  // spec/malloc9.md 6.4: the share of the address space; what uma_set_limit() gets on top.
  static std::uint64_t map_size(std::uint64_t kmem_size, std::uint64_t divisor,
                                std::uint64_t pages);

  Memguard(Vm& owner, const MemguardConfig& config);
  ~Memguard();
  Memguard(const Memguard&) = delete;
  Memguard& operator=(const Memguard&) = delete;

  // Whether a request of this size, under this name, is to be guarded.
  bool wants(std::size_t size, std::string_view name);
  bool wants_zone(const uma_zone& zone);
  // uma(9)'s calls. True: `*item` is the result; the item is gone.
  bool zalloc(uma_zone& zone, void** item, void* udata, int flags);
  bool zfree(uma_zone& zone, void* item, void* udata);
  bool owns(const void* addr) const {  // is_memguard_addr()
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(addr) - base) < mapsize;
  }
  // Null: size 0, no room or no pages. `machinery`: UMA's own.
  void* alloc(std::size_t size, int flags, bool machinery);
  void free(void* addr);
  std::size_t req_size(const void* addr);
  void* realloc(void* addr, std::size_t size, int flags);
  bool mapped(const void* addr);              // a store there does not fault
  bool is_machinery(const void* addr);        // of a block that UMA keeps its own things in
  std::size_t block_bytes(const void* addr);  // whole pages; 0: no block begins in its page
  std::string get_desc();
  bool set_desc(std::string_view text);  // false: too long

  Vm& vm;
  std::byte* base = nullptr;
  std::uint64_t mapsize = 0, physlimit = 0;
  std::uint64_t divisor;
  std::atomic<int> options;
  std::atomic<std::uint32_t> minsize{0}, frequency;
  std::atomic<std::uint64_t> mapused{0}, wasted{0}, numalloc{0}, fail_kva{0}, fail_pgs{0},
      minsize_reject{0}, frequency_hits{0};

 private:
  struct Block {
    std::size_t req_size, pages;
    std::uint64_t kva_first, kva_pages;
    bool machinery;
    std::vector<void*> backing;  // pages of the arena
  };
  using Blocks = std::map<std::uint64_t, Block>;  // first data page -> block
  std::uint64_t page_of(const void* addr) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(addr) - base) / kPageBytes;
  }
  Blocks::iterator covering(std::uint64_t page);  // Requires: mutex held. The block, or end().
  std::uint64_t kva_alloc(std::uint64_t pages);   // ditto. ~0: none
  void show(std::uint64_t first, std::uint64_t pages, bool readable);  // ditto
  Block& block_at(const void* addr);  // ditto; panics unless mapped

  std::mutex mutex;
  std::string desc;
  std::atomic<bool> named;  // `desc` is not empty
  std::uint64_t random;
  Blocks blocks;
  std::map<std::uint64_t, std::uint64_t> taken;  // first page of address space -> pages
  std::uint64_t cursor = 0;
  std::vector<bool> pieces;  // known to the address map
};

}  // namespace dtmalloc
