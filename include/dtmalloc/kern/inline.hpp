// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) and free(9) inlined into the caller: for who replays or benchmarks millions of them.
// They do what kern_malloc() and kern_free() do, which are the same code out of line.
//
// Example:
//   void* block = dtmalloc::inline_malloc(128, &type, kM_NOWAIT);
//   dtmalloc::inline_free(block, &type);
//
// The hot part needs: the guard word is 0, the type is not traced, no M_ZERO, the size has a class,
// the alloc bucket has an item (room), the class is in the type's mask. Each unusual case is a call
// with the arguments where they are. The layouts below are the machine's own and part of no
// promise: a program is built with the headers of the library that it is linked with.
//
// Units:         sizes in bytes.
// Errors:        as kern_malloc() and kern_free().
// Thread safety: as kern_malloc(): the current CPU's critical section, no lock.
// Source:        malloc(9); src/README.md, "Life of one malloc".
#pragma once

#include <cstddef>
#include <cstdint>
#include <dtmalloc/kern/malloc.hpp>
#include <dtmalloc/smp/cpu.hpp>
#include <dtmalloc/vm/hot_cache.hpp>

namespace dtmalloc {

inline constexpr int KMEM_ZSHIFT = 4;
inline constexpr std::size_t KMEM_ZBASE = 16;
inline constexpr std::size_t KMEM_ZMASK = KMEM_ZBASE - 1;
inline constexpr std::size_t KMEM_ZMAX = 65536;
inline constexpr std::size_t KMEM_ZSIZE = KMEM_ZMAX >> KMEM_ZSHIFT;

inline constexpr std::size_t kMaxClasses = 31;

// A Cpu with its shares of malloc's zones: slot 0 is empty and full at once, slot 1 + zindx is of
// class zindx.
template <typename Cache>
struct CpuWithCaches : Cpu {
  Cache slots[kMaxClasses + 1];
  // (size + 15) >> 4 -> offset from the Cpu of the class's slot; slot 0's: the cold path decides
  std::uint16_t slot_offset[KMEM_ZSIZE + 1];

  Cache& cache_of(std::size_t size) {
    return *reinterpret_cast<Cache*>(reinterpret_cast<std::byte*>(this) +
                                     slot_offset[(size + KMEM_ZMASK) >> KMEM_ZSHIFT]);
  }
};
struct alignas(128) HotSlot : HotCache {};
using HotCpu = CpuWithCaches<HotSlot>;  // as the hot path sees the machine's KernCpu

namespace hot {

// --- malloc.cpp: what the hot parts fall back on, inside the section that they entered.
void* malloc_traced(std::size_t size, malloc_type* mtp, int flags);  // a probe, M_ZERO, or a guard
void* malloc_cold(std::size_t size, malloc_type* mtp, int flags);
void* malloc_cold_nohooks(std::size_t size, malloc_type* mtp, int flags);
void free_traced(void* addr, malloc_type* mtp);
void free_cold(void* addr, malloc_type* mtp);
void free_cold_nohooks(void* addr, malloc_type* mtp);

using Word __attribute__((may_alias)) = std::uint64_t;
using Half __attribute__((may_alias)) = std::uint32_t;

// An acquire load. On x86 every load is one; as a plain access it becomes an operand of the `or`
// that uses it, which compilers deny to atomics. Checkers see the atomic.
template <typename T>
inline T acquire(const T* word) {
#if defined(__x86_64__) && !defined(DTM_ATOMIC_WORDS)
  return *word;
#else
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}
inline std::uint32_t guard_word(const Cpu* cpu) {
  return acquire(reinterpret_cast<const Half*>(&cpu->guard));
}
// Both probe ids of a type at once.
inline std::uint64_t probe_ids(const malloc_type* mtp) {
  return acquire(reinterpret_cast<const Word*>(mtp->ks_mti.mti_probes));
}
// The order of accesses as the compiler sees it; the other side's run_on_cpu() does the rest.
inline void in_order() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void enter(Cpu* cpu) {
  cpu->critnest.store(1, std::memory_order_relaxed);
  in_order();
}
inline void leave(Cpu* cpu) { cpu->critnest.store(cpu->critbase, std::memory_order_release); }

inline malloc_type_stats* stats_line(Cpu* cpu, const malloc_type* mtp) {
  return reinterpret_cast<malloc_type_stats*>(
      reinterpret_cast<std::byte*>(cpu) + reinterpret_cast<std::uintptr_t>(mtp->ks_mti.mti_stats));
}
// The slot of an address's zone; 0: look.
inline std::uint8_t page_slot(const Cpu* cpu, std::size_t page) {
  return __atomic_load_n(cpu->page_zone + page, __ATOMIC_RELAXED);
}
inline std::size_t page_of(const Cpu* cpu, const void* addr) {
  return (reinterpret_cast<std::uintptr_t>(addr) - cpu->arena_base) >> 12;
}

// `Pin`: called with the arguments in their registers, where they are to stay for the tail calls.
template <bool Pin>
__attribute__((always_inline)) inline void pin(std::size_t& size, malloc_type*& mtp, int& flags) {
#if defined(__x86_64__)
  if (Pin) __asm__("" : "+D"(size), "+S"(mtp), "+d"(flags));
#endif
}

template <bool Pin>
__attribute__((always_inline)) inline void pin(void*& addr, malloc_type*& mtp) {
#if defined(__x86_64__)
  if (Pin) __asm__("" : "+D"(addr), "+S"(mtp));
#endif
}

template <bool Hooks, bool Pin>
__attribute__((always_inline)) inline void* malloc_hot(std::size_t size, malloc_type* mtp,
                                                       int flags) {
  const auto cold = Hooks ? malloc_cold : malloc_cold_nohooks;
  auto* cpu = static_cast<HotCpu*>(curcpu);
  enter(cpu);
  pin<Pin>(size, mtp, flags);
  std::uint64_t unusual = (static_cast<unsigned>(flags) & kM_ZERO) | guard_word(cpu);
  if (Hooks) unusual |= probe_ids(mtp);
  in_order();
  if (__builtin_expect(unusual != 0, 0))
    return Hooks ? malloc_traced(size, mtp, flags) : cold(size, mtp, flags);
  if (__builtin_expect(size > KMEM_ZMAX, 0)) return cold(size, mtp, flags);
  HotCache& cache = cpu->cache_of(size);
  void** top = cache.top;
  if (__builtin_expect(top == cache.base, 0)) return cold(size, mtp, flags);
  malloc_type_stats* stats = stats_line(cpu, mtp);
  if (__builtin_expect((stats->mts_size & cache.mask_bit) == 0, 0)) return cold(size, mtp, flags);
  pin<Pin>(size, mtp, flags);
  void* item = *--top;
  cache.top = top;
  owner_add(cache.uc_allocs, 1);
  owner_add(stats->mts_memalloced, cache.uz_size);
  owner_add(stats->mts_numallocs, 1);
  leave(cpu);
  return item;
}

template <bool Hooks, bool Pin>
__attribute__((always_inline)) inline void free_hot(void* addr, malloc_type* mtp) {
  auto* cpu = static_cast<HotCpu*>(curcpu);
  enter(cpu);
  const std::uint64_t unusual = guard_word(cpu) | (Hooks ? probe_ids(mtp) : 0);
  in_order();
  if (__builtin_expect(unusual != 0, 0)) {
    pin<Pin>(addr, mtp);
    return Hooks ? free_traced(addr, mtp) : free_cold_nohooks(addr, mtp);
  }
  const std::size_t page = page_of(cpu, addr);
  if (__builtin_expect(page >= cpu->arena_pages, 0))
    return Hooks ? free_cold(addr, mtp) : free_cold_nohooks(addr, mtp);
  HotCache& cache = cpu->slots[page_slot(cpu, page)];
  void** top = cache.top;
  if (__builtin_expect(top == cache.end, 0))
    return Hooks ? free_cold(addr, mtp) : free_cold_nohooks(addr, mtp);
  malloc_type_stats* stats = stats_line(cpu, mtp);
  *top = addr;
  cache.top = top + 1;
  owner_add(stats->mts_memfreed, cache.uz_size);
  owner_add(stats->mts_numfrees, 1);
  leave(cpu);
}

}  // namespace hot

// kern_malloc() and kern_free(), inlined.
__attribute__((always_inline)) inline void* inline_malloc(std::size_t size, malloc_type* mtp,
                                                          int flags) {
  return hot::malloc_hot<true, false>(size, mtp, flags);
}
__attribute__((always_inline)) inline void inline_free(void* addr, malloc_type* mtp) {
  hot::free_hot<true, false>(addr, mtp);
}

}  // namespace dtmalloc
