// SPDX-License-Identifier: BSD-2-Clause
// Pages: the arena's free runs, the supply of physical pages, large and contiguous memory.
//
// Counterpart:  sys/vm/vm_kern.c, vm_page.c, subr_vmem.c
// Locking:      page_mutex; sleeping with none
// Invariants:   VM-1, VM-2, VM-3 (vm.hpp)
// Differs:      a sleeper holds no pages while it waits for the rest of a large block; best fit
//               instead of quantum caches
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kArenaFactor = 4;   // pages must run out before addresses do
constexpr std::uint64_t kReturnPages = 64;  // blocks of this size give host memory back
constexpr const char* kFreePages = "free pages";

void* reserve(std::size_t size) {
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

std::uint64_t pages_of(std::uint64_t bytes) {
  return bytes / kPageBytes + (bytes % kPageBytes != 0 ? 1 : 0);
}

// Whether a request is for some pages, not more than 64 bits can count bytes. A kernel asserts it
// or loops; here who may sleep panics.
bool sane_size(Vm& vm, std::size_t size, int flags) {
  if (size != 0 && size <= ~std::size_t{0} - kPageBytes + 1) return true;
  if ((flags & m::WAITOK) != 0)
    vm.cpus.panic("not modelled: an allocation of " + std::to_string(size) + " bytes that waits");
  return false;
}

}  // namespace

constinit thread_local const OperationNote* current_operation = nullptr;

// spec/malloc9.md 5.11a
PageThresholds PageThresholds::of(std::uint64_t pages) {
  constexpr std::uint64_t kPageoutFreeMin = 2 * 65536 / kPageBytes + 2;
  PageThresholds t{};
  t.interrupt_free_min = 2;
  t.free_reserved = 32 + kPageoutFreeMin + pages / 768;
  t.free_min = pages > 1024 ? 4 + (pages - 1024) / 200 : 4;
  t.free_severe = t.free_min / 2;
  t.free_target = 4 * t.free_min + t.free_reserved;
  t.free_min += t.free_reserved;
  t.free_severe += t.free_reserved;
  return t;
}

bool Vm::can_reserve(std::uint64_t mem) {
  if (mem > (std::uint64_t{1} << 44)) return false;
  // The arena, a byte and a word for each of its pages.
  const std::uint64_t pages = kArenaFactor * (mem / kPageBytes);
  const std::uint64_t size = pages * (kPageBytes + 1 + sizeof(std::uintptr_t)) + 3 * kPageBytes;
  void* at = reserve(size);
  if (at == nullptr) return false;
  munmap(at, size);
  return true;
}

Vm::Vm(CpuSet& cpu_set, AddressMap& address_map, SysctlTree& sysctl_tree, const VmConfig& vm_config)
    : cpus(cpu_set), addresses(address_map), sysctl(sysctl_tree), config(vm_config) {
  page_count = config.mem / kPageBytes;
  arena_pages = kArenaFactor * page_count;
  arena = static_cast<std::byte*>(reserve(arena_pages * kPageBytes));
  page_zone = static_cast<std::uint8_t*>(reserve(arena_pages));
  page_slab = static_cast<std::atomic<std::uintptr_t>*>(reserve(arena_pages * sizeof *page_slab));
  if (arena == nullptr || page_zone == nullptr || page_slab == nullptr) {
    if (arena != nullptr) munmap(arena, arena_pages * kPageBytes);
    if (page_zone != nullptr) munmap(page_zone, arena_pages);
    throw KernelPanic("cannot boot: the host refuses the address space of the arena");
  }
  madvise(arena, arena_pages * kPageBytes, MADV_NOHUGEPAGE);
  free_count = page_count;
  thresholds = PageThresholds::of(page_count);
  bucketdisable = page_count < thresholds.free_min;
  runs[0] = arena_pages;
  fit.emplace(arena_pages, 0);
  addresses.add({AddressMap::kArena, arena, arena_pages * kPageBytes, true});
}

Vm::~Vm() {
  uma_timer_end(*this);
  munmap(arena, arena_pages * kPageBytes);
  munmap(page_zone, arena_pages);
  munmap(page_slab, arena_pages * sizeof *page_slab);
}

bool Vm::may_take(std::uint64_t pages, int flags) const {
  const std::uint64_t limit = (flags & m::USE_RESERVE) != 0 ? 0 : thresholds.interrupt_free_min;
  return free_count.load(std::memory_order_relaxed) >= limit + pages;
}

// Requires: page_mutex held; [first, first + pages) lies inside `run`.
void Vm::take_run(std::map<std::uint64_t, std::uint64_t>::iterator run, std::uint64_t first,
                  std::uint64_t pages) {
  const auto [start, length] = *run;
  fit.erase({length, start});
  runs.erase(run);
  if (first > start) {
    runs.emplace(start, first - start);
    fit.emplace(first - start, start);
  }
  if (start + length > first + pages) {
    runs.emplace(first + pages, start + length - first - pages);
    fit.emplace(start + length - first - pages, first + pages);
  }
  free_count.fetch_sub(pages, std::memory_order_relaxed);
}

std::uint64_t Vm::page_alloc(std::uint64_t pages, int flags) {
  const std::lock_guard lock(page_mutex);
  if (!may_take(pages, flags)) return kNoPage;
  auto best = fit.lower_bound({pages, 0});
  if (best == fit.end()) return kNoPage;
  const std::uint64_t first = best->second;
  take_run(runs.find(first), first, pages);
  return first;
}

std::uint64_t Vm::page_alloc_contig(std::uint64_t pages, int flags, std::uint64_t low,
                                    std::uint64_t high, std::size_t alignment,
                                    std::uint64_t boundary, bool* nowhere) {
  const std::uint64_t step = std::max<std::uint64_t>(1, alignment / kPageBytes);
  const std::uint64_t fence = boundary / kPageBytes;
  const std::uint64_t from = low / kPageBytes + (low % kPageBytes != 0 ? 1 : 0);
  const std::uint64_t to =
      std::min(page_count, high / kPageBytes + (high % kPageBytes + 1) / kPageBytes);
  if (from >= to) {
    *nowhere = true;
    return kNoPage;
  }
  const std::lock_guard lock(page_mutex);
  if (!may_take(pages, flags)) return kNoPage;
  for (auto run = runs.begin(); run != runs.end() && run->first < to; ++run) {
    std::uint64_t first = std::max(run->first, from);
    const std::uint64_t end = std::min(run->first + run->second, to);
    while (true) {
      first = (first + step - 1) / step * step;
      if (first + pages > end) break;
      if (fence != 0 && first / fence != (first + pages - 1) / fence) {
        first = (first / fence + 1) * fence;
        if (pages > fence) break;
        continue;
      }
      take_run(run, first, pages);
      return first;
    }
  }
  return kNoPage;
}

void Vm::page_free(std::uint64_t first, std::uint64_t pages) {
  if (pages >= kReturnPages) madvise(page_address(first), pages * kPageBytes, MADV_DONTNEED);
  bool wake = false;
  {
    const std::lock_guard lock(page_mutex);
    // A sleeper counts itself, then looks at these; here they change, then the sleepers are looked
    // at: with one order of all four, one of the two sees the other.
    free_count.fetch_add(pages);
    page_frees.fetch_add(1);
    auto next = runs.lower_bound(first);
    if (next != runs.end() && next->first == first + pages) {
      pages += next->second;
      fit.erase({next->second, next->first});
      next = runs.erase(next);
    }
    if (next != runs.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == first) {
        first = before->first;
        pages += before->second;
        fit.erase({before->second, before->first});
        runs.erase(before);
      }
    }
    runs.emplace(first, pages);
    fit.emplace(pages, first);
    wake = page_waiters.load() > 0 && free_count.load() > thresholds.free_min;
  }
  if (wake) cpus.wakeup(&free_count);
}

void Vm::page_wait(std::uint64_t seen) {
  std::string what = "allocation";
  if (current_operation != nullptr && describe_operation)
    what = describe_operation(*current_operation);
  page_waiters.fetch_add(1);
  struct Done {
    std::atomic<int>& waiters;
    ~Done() { waiters.fetch_sub(1, std::memory_order_relaxed); }
  } done{page_waiters};
  cpus.sleep_on(&free_count, what, kFreePages, [&] {
    return page_frees.load() != seen && free_count.load() > thresholds.free_min;
  });
}

void check_reserve_flags(Vm& vm, int flags) {
  if (vm.config.invariants && (flags & m::USE_RESERVE) != 0 && (flags & m::NOWAIT) == 0)
    vm.cpus.panic("M_USE_RESERVE requires M_NOWAIT");
}

void* kmem_malloc(Vm& vm, std::size_t size, int flags) {
  const std::uint64_t pages = pages_of(size);
  if (!sane_size(vm, size, flags)) return nullptr;
  check_reserve_flags(vm, flags);
  std::uint64_t first;
  while (true) {
    const std::uint64_t seen = vm.page_frees.load(std::memory_order_relaxed);
    if ((first = vm.page_alloc(pages, flags)) != Vm::kNoPage) break;
    if ((flags & m::WAITOK) == 0) return nullptr;
    vm.page_wait(seen);
  }
  void* addr = vm.page_address(first);
  if ((flags & m::ZERO) != 0) {
    if (pages >= kReturnPages)
      madvise(addr, pages * kPageBytes, MADV_DONTNEED);
    else
      std::memset(addr, 0, pages * kPageBytes);
  }
  return addr;
}

void* kmem_alloc_contig(Vm& vm, std::size_t size, int flags, std::uint64_t low, std::uint64_t high,
                        std::size_t alignment, std::uint64_t boundary) {
  const std::uint64_t pages = pages_of(size);
  if (!sane_size(vm, size, flags)) return nullptr;
  check_reserve_flags(vm, flags);
  std::uint64_t first;
  while (true) {
    const std::uint64_t seen = vm.page_frees.load(std::memory_order_relaxed);
    bool nowhere = false;
    first = vm.page_alloc_contig(pages, flags, low, high, alignment, boundary, &nowhere);
    if (first != Vm::kNoPage) break;
    // spec/malloc9.md 3.7: a domain without such a range leaves the set; nobody waits for none.
    if (nowhere || (flags & m::WAITOK) == 0) return nullptr;
    vm.page_wait(seen);
  }
  void* addr = vm.page_address(first);
  if ((flags & m::ZERO) != 0) std::memset(addr, 0, pages * kPageBytes);
  return addr;
}

void kmem_free(Vm& vm, void* addr, std::size_t size) {
  if (!vm.in_arena(addr) || reinterpret_cast<std::uintptr_t>(addr) % kPageBytes != 0)
    vm.cpus.panic("kmem_free: address is not that of a block");
  vm.page_free(vm.page_of(addr), pages_of(size));
}

}  // namespace dtmalloc
