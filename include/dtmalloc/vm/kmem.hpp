// SPDX-License-Identifier: BSD-2-Clause
// kmem: the reserved address range of one machine and its physical pages.
//
// Example:
//   void* p = kmem_malloc(kernel.vm(), 3 * kPageBytes, kM_WAITOK);
//   kmem_free(kernel.vm(), p, 3 * kPageBytes);
//
// Units:         bytes; sizes are rounded up to whole pages of 4096 bytes.
// Errors:        nullptr when pages run out under M_NOWAIT; M_WAITOK sleeps.
// Thread safety: any thread that owns a CPU of the machine.
// Source:        spec/malloc9.md 3.4, 3.7, 5.11a.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dtmalloc/vm/domainset.hpp>
#include <functional>
#include <memory>
#include <optional>

namespace dtmalloc {

struct Vm;

inline constexpr std::size_t kPageBytes = 4096;

// Free-page thresholds of a domain of `pages` pages.
struct PageThresholds {
  std::uint64_t interrupt_free_min, free_reserved, free_min, free_severe, free_target;
  static PageThresholds of(std::uint64_t pages);
  std::uint64_t wakeup() const { return free_target / 10 * 9; }  // of the page daemon
};

// From the domains of a set in the order of its policy; with M_WAITOK sleeps until one of them has
// the pages. Those without a set ask all domains round-robin.
void* kmem_malloc_domainset(Vm& vm, const domainset& ds, std::size_t size, int flags);
void* kmem_malloc(Vm& vm, std::size_t size, int flags);
void* kmem_alloc_contig_domainset(Vm& vm, const domainset& ds, std::size_t size, int flags,
                                  std::uint64_t low, std::uint64_t high, std::size_t alignment,
                                  std::uint64_t boundary);
void* kmem_alloc_contig(Vm& vm, std::size_t size, int flags, std::uint64_t low, std::uint64_t high,
                        std::size_t alignment, std::uint64_t boundary);
void kmem_free(Vm& vm, void* addr, std::size_t size);

enum class KmemArena { normal, rwx, nofree };

// What is known of the page at an address, as its owner was given it.
struct PageInfo {
  int domain = -1;                        // -1: the address is outside the arena
  std::optional<std::uint64_t> physical;  // address; none: contigmalloc cannot hand the page out
  bool dumped = true;                     // false: M_NODUMP
  KmemArena arena = KmemArena::normal;
};
// Physical memory is that of domain 0, then that of domain 1 and so on; the first pages of a
// domain's area of the arena, as many as it has, are its physical pages in order.
PageInfo page_info(const Vm& vm, const void* addr);

// What a handler of vm_lowmem is told: what is short.
inline constexpr int VM_LOW_KMEM = 0x01;   // UMA is above its limit, or pages are all but gone
inline constexpr int VM_LOW_PAGES = 0x02;  // the page daemon wants pages
// EVENTHANDLER_REGISTER(vm_lowmem): the function is called, in order of registration, before UMA
// is reclaimed, until this is destroyed. It may free memory, and must not sleep. The machine must
// outlive this.
class LowmemHandler {
 public:
  LowmemHandler(Vm& vm, std::function<void(int)> function);
  ~LowmemHandler();
  LowmemHandler(const LowmemHandler&) = delete;
  LowmemHandler& operator=(const LowmemHandler&) = delete;
  struct Entry;

 private:
  Vm& vm_;
  std::shared_ptr<Entry> entry_;
};

}  // namespace dtmalloc
