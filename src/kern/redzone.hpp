// SPDX-License-Identifier: BSD-2-Clause
// DEBUG_REDZONE: guard bytes before and behind each block of malloc(9), looked at by free().
//
//   raw   ...   [struct stack 152][size 8][guard 16]   block of n bytes   [guard 16]
//               `-- header, 176 bytes, ends at raw + R(n) = the address that malloc() returns
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kern/kernel_impl.hpp"

namespace dtmalloc {

class Redzone {
 public:
  Redzone(Kernel::Impl& k, int panics) : redzone_panic(panics), k_(k) {}

  // What a header may take, with its padding.
  static constexpr std::array<std::size_t, 5> kRooms{256, 512, 1024, 2048, kPageSize};
  static std::size_t roundup(std::size_t n);    // R(n)
  static std::size_t size_ntor(std::size_t n);  // what a request of n bytes asks for in all
  void* setup(void* raw, std::size_t n);        // what malloc() returns
  std::size_t get_size(const void* addr);       // n, out of the header
  void* addr_ntor(void* addr);                  // the raw block
  // The same of an address that may be none of a block: then itself.
  const void* raw_if_block(const void* addr) const;
  void check(void* addr);  // free(): reports what was overwritten

  std::atomic<int> redzone_panic;
  std::atomic<std::uint64_t> redzone_extra_mem{0};

 private:
  void report(const char* what, const char* where, unsigned count, const void* addr, std::size_t n,
              const void* header);
  Kernel::Impl& k_;
};

}  // namespace dtmalloc
