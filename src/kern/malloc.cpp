// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) and free(9): the hot functions out of line, and what they fall back on. The hot parts
// themselves stand in dtmalloc/kern/inline.hpp; here they save no register and call nothing, and
// each unusual case is a tail call.
//
// Counterpart:  sys/kern/kern_malloc.c (malloc, free, malloc_type_zone_allocated)
// Locking:      the current CPU's critical section; no lock
// Differs:      UMA's per-CPU pop and the statistics share one critical section when nothing is
//               unusual; nobody can see the difference
#include <cstring>
#include <dtmalloc/kern/inline.hpp>

#include "kern/kernel_impl.hpp"
#include "kern/ledger_impl.hpp"

#define DTM_COLD __attribute__((noinline, cold))
#define DTM_HOT __attribute__((hot))
#define DTM_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)

namespace dtmalloc {
namespace hot {
namespace {

inline std::uint32_t probe_id(const malloc_type* mtp, int which) {
  return __atomic_load_n(&mtp->ks_mti.mti_probes[which], __ATOMIC_ACQUIRE);
}

// The end of an accounting point: the provider is called if this type is traced. What the hook
// calls finds a section that it cannot leave; a panic in it leaves the section.
__attribute__((always_inline)) inline void maybe_fire(Cpu* cpu, int which, malloc_type* mtp,
                                                      malloc_type_stats* stats, std::size_t size,
                                                      std::int64_t zindx) {
  const std::uint32_t id = probe_id(mtp, which);
  if (id == 0 || !cpu->dtrace_malloc_enabled) return;
  // Outside other sections the counter is written with constants: what one firing stores the next
  // one need not wait for.
  if (DTM_UNLIKELY(cpu->critbase != 0))
    ++cpu->critbase;
  else
    cpu->critbase = 1;
  try {
    cpu->dtrace_malloc_probe(
        id, reinterpret_cast<std::uintptr_t>(mtp), reinterpret_cast<std::uintptr_t>(&mtp->ks_mti),
        reinterpret_cast<std::uintptr_t>(stats), size, static_cast<std::uintptr_t>(zindx));
  } catch (...) {
    --cpu->critbase;
    leave(cpu);
    throw;
  }
  if (DTM_UNLIKELY(cpu->critbase != 1))
    --cpu->critbase;
  else
    cpu->critbase = 0;
}

// What cache_alloc() and cache_free() do first, as long as nobody watches: the hot part tries
// again.
bool swapped_to_alloc(std::size_t size) {
  if (guard_word(curcpu) != 0 || size > KMEM_ZMAX) return false;
  uma_cache& cache = static_cast<KernCpu*>(curcpu)->cache_of(size);
  return cache.top == cache.base && cache.swap_to_alloc();
}
bool swapped_to_free(const void* addr) {
  if (guard_word(curcpu) != 0) return false;
  auto* cpu = static_cast<KernCpu*>(curcpu);
  const std::size_t page = page_of(cpu, addr);
  if (page >= cpu->arena_pages) return false;
  uma_cache& cache = cpu->slots[page_slot(cpu, page)];
  return cache.top == cache.end && cache.swap_to_free();
}

template <bool Hooks>
DTM_COLD void* malloc_by_hand(std::size_t size, malloc_type* mtp, int flags) {
  if (swapped_to_alloc(size)) return malloc_hot<Hooks, false>(size, mtp, flags);
  leave(curcpu);
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  return in_function(
      KernelFunction::malloc,
      [&]() -> void* {
        if (failure_planned(*k, mtp, flags)) return nullptr;
        return note_allocation(*k, malloc_slow(*k, size, mtp, flags, Hooks), size, mtp);
      },
      size, mtp, flags);
}

template <bool Hooks>
DTM_COLD void free_by_hand(void* addr, malloc_type* mtp) {
  if (swapped_to_free(addr)) return free_hot<Hooks, false>(addr, mtp);
  leave(curcpu);
  if (Kernel::Impl* k = enter_kernel())
    in_function(
        KernelFunction::free, [&] { free_slow(*k, addr, mtp, false, Hooks); }, addr, mtp);
}

// A traced type or M_ZERO, and otherwise the hot path over again.
template <bool Zero>
__attribute__((noinline)) void* malloc_with(std::size_t size, malloc_type* mtp, int flags) {
  if (!Zero && (flags & kM_ZERO) != 0) return malloc_with<true>(size, mtp, flags);
  auto* cpu = static_cast<HotCpu*>(curcpu);
  if (DTM_UNLIKELY(guard_word(cpu) != 0 || size > KMEM_ZMAX)) return malloc_cold(size, mtp, flags);
  HotCache& cache = cpu->cache_of(size);
  void** top = cache.top;
  if (DTM_UNLIKELY(top == cache.base)) return malloc_cold(size, mtp, flags);
  malloc_type_stats* stats = stats_line(cpu, mtp);
  if (DTM_UNLIKELY((stats->mts_size & cache.mask_bit) == 0)) return malloc_cold(size, mtp, flags);
  void* item = *--top;
  cache.top = top;
  owner_add(cache.uc_allocs, 1);
  const std::size_t bytes = cache.uz_size;
  const std::int64_t zindx = cache.zindx;
  if (Zero) std::memset(item, 0, bytes);
  owner_add(stats->mts_memalloced, bytes);
  owner_add(stats->mts_numallocs, 1);
  maybe_fire(cpu, DTMALLOC_PROBE_MALLOC, mtp, stats, bytes, zindx);
  leave(cpu);
  return item;
}

}  // namespace

void* malloc_traced(std::size_t size, malloc_type* mtp, int flags) {
  return malloc_with<false>(size, mtp, flags);
}
DTM_COLD void* malloc_cold(std::size_t size, malloc_type* mtp, int flags) {
  return malloc_by_hand<true>(size, mtp, flags);
}
DTM_COLD void* malloc_cold_nohooks(std::size_t size, malloc_type* mtp, int flags) {
  return malloc_by_hand<false>(size, mtp, flags);
}
DTM_COLD void free_cold(void* addr, malloc_type* mtp) { free_by_hand<true>(addr, mtp); }
DTM_COLD void free_cold_nohooks(void* addr, malloc_type* mtp) { free_by_hand<false>(addr, mtp); }

void free_traced(void* addr, malloc_type* mtp) {
  auto* cpu = static_cast<HotCpu*>(curcpu);
  if (DTM_UNLIKELY(guard_word(cpu) != 0)) return free_cold(addr, mtp);
  const std::size_t page = page_of(cpu, addr);
  if (DTM_UNLIKELY(page >= cpu->arena_pages)) return free_cold(addr, mtp);
  HotCache& cache = cpu->slots[page_slot(cpu, page)];
  if (DTM_UNLIKELY(cache.top == cache.end || mtp->ks_mti.mti_stats == nullptr))
    return free_cold(addr, mtp);
  *cache.top++ = addr;
  malloc_type_stats* stats = stats_line(cpu, mtp);
  const std::size_t bytes = cache.uz_size;
  owner_add(stats->mts_memfreed, bytes);
  owner_add(stats->mts_numfrees, 1);
  maybe_fire(cpu, DTMALLOC_PROBE_FREE, mtp, stats, bytes, 0);
  leave(cpu);
}

}  // namespace hot

using hot::maybe_fire;

Kernel::Impl* enter_kernel() {
  while (true) {
    Cpu& cpu = *curcpu;
    const std::uint32_t guard = cpu.guard.load(std::memory_order_acquire);
    if ((guard & kGuardUnbound) != 0) {
      Kernel* kernel = Kernel::default_kernel();
      DTM_CHECK(kernel != nullptr, "malloc(9) is used but no Kernel has booted");
      kernel->cpus().bind_any();
      continue;
    }
    if ((guard & kGuardPanic) != 0) {
      cpu.machine->check_panic();
      return nullptr;
    }
    // In a section of its own the thread goes on: whoever stops the CPU waits for the section's
    // end.
    if ((guard & kGuardStop) != 0 && cpu.critbase == 0) {
      cpu.machine->wait_while_stopped(cpu);
      continue;
    }
    return &static_cast<Kernel*>(cpu.kernel)->impl();
  }
}

void malloc_type_zone_allocated(Kernel::Impl& k, malloc_type* mtp, std::size_t size, int zindx,
                                bool hooks) {
  if (size > 0) note_counted(k, mtp, 1, static_cast<std::int64_t>(size), zindx != -1);
  Cpu& cpu = section_enter();
  struct Leave {
    ~Leave() { section_exit(); }
  } leave_section;
  malloc_type_stats& stats = k.line_to_count(cpu, *mtp);
  if (size > 0) {
    owner_add(stats.mts_memalloced, size);
    owner_add(stats.mts_numallocs, 1);
  }
  if (zindx != -1 && (stats.mts_size >> zindx & 1) == 0)
    owner_add(stats.mts_size, std::uint64_t{1} << zindx);
  if (hooks) maybe_fire(&cpu, DTMALLOC_PROBE_MALLOC, mtp, &stats, size, zindx);
}

void type_freed(Kernel::Impl& k, malloc_type* mtp, std::size_t size, bool hooks) {
  note_counted(k, mtp, -1, -static_cast<std::int64_t>(size));
  Cpu& cpu = section_enter();
  struct Leave {
    ~Leave() { section_exit(); }
  } leave_section;
  malloc_type_stats& stats = k.line_to_count(cpu, *mtp);
  owner_add(stats.mts_memfreed, size);
  owner_add(stats.mts_numfrees, 1);
  if (hooks) maybe_fire(&cpu, DTMALLOC_PROBE_FREE, mtp, &stats, size, 0);
}

void* malloc_large(Kernel::Impl& k, std::size_t size, malloc_type* mtp, const domainset& ds,
                   int flags, const char* name, bool hooks) {
  const Note note(name, size, mtp, flags);
  return in_function(
      KernelFunction::malloc_large,
      [&] {
        void* addr = kmem_malloc_domainset(*k.vm, ds, size, flags);
        const std::size_t bytes = round_page(size);
        if (addr != nullptr) {
          k.vm->page_slab[k.vm->page_of(addr)].store(
              bytes << SLAB_COOKIE_SHIFT | SLAB_COOKIE_MALLOC_LARGE, std::memory_order_release);
          k.vm->kmem_total_add(bytes);
          malloc_type_zone_allocated(k, mtp, bytes, -1, hooks);
        } else if ((flags & kM_WAITOK) != 0 && k.invariants()) {
          k.panic("malloc(M_WAITOK) returned NULL");
        }
        return addr;
      },
      size, mtp, &ds, flags);
}

void* malloc_slow(Kernel::Impl& k, std::size_t size, malloc_type* mtp, int flags, bool hooks) {
  if (k.invariants() && (flags & kM_EXEC) != 0)
    k.panic("Assertion (flags & M_EXEC) == 0 failed at malloc");
  const std::size_t osize = size;
  void* item = nullptr;
  if (malloc_dbg(k, &item, &size, mtp, flags)) return item;
  if (size > k.kmem_zmax)
    return redzone_setup(k, malloc_large(k, size, mtp, *DOMAINSET_RR(), flags, "malloc", hooks),
                         osize);
  const Note note("malloc", osize, mtp, flags);
  const std::size_t zindx = k.zindx_of(size);
  uma_zone* zone = k.kz_zone(*mtp, zindx);
  item = uma_zalloc_arg(zone, ctor_argument(k, zone), flags);
  malloc_type_zone_allocated(k, mtp, item != nullptr ? zone->uz_size : 0, static_cast<int>(zindx),
                             hooks);
  if (item == nullptr && (flags & kM_WAITOK) != 0 && k.invariants())
    k.panic("malloc(M_WAITOK) returned NULL");
  return redzone_setup(k, item, osize);
}

[[noreturn]] static void not_allocated(Kernel::Impl& k, void* addr, bool zero) {
  void* const page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(addr) & ~(kPageSize - 1));
  if (k.release.panic_names_function)
    k.panic("_free(%d): address %p(%p) has not been allocated", zero ? 1 : 0, addr, page);
  // That zfree() said the same: UNVERIFIED.
  k.panic("free: address %p(%p) has not been allocated.\n", addr, page);
}

// Whether a block of the slab that began at this address would end outside the slab.
static bool reaches_beyond(std::uintptr_t slab_word, const void* addr, std::size_t size) {
  const auto& slab = *reinterpret_cast<const uma_slab*>(slab_word);
  return static_cast<const std::byte*>(addr) + size >
         slab.us_data + slab.us_keg->uk_ppera * kPageSize;
}

void free_slow(Kernel::Impl& k, void* addr, malloc_type* mtp, bool zero, bool hooks) {
  const FreeNote note(k, addr, mtp);
  if (free_dbg(k, &addr, mtp)) return;
  check_type(k, mtp, "free");
  Vm& vm = *k.vm;
  const std::uintptr_t word = k.slab_word(addr);
  if (word == 0) not_allocated(k, addr, zero);
  const std::size_t value = word >> SLAB_COOKIE_SHIFT;
  std::size_t size = 0;
  switch (word & SLAB_COOKIE_MASK) {
    case SLAB_COOKIE_SLAB_PTR: {
      uma_zone* zone = k.keg_at(word).zone;
      if (k.is_machinery(word))
        k.panic("not modelled: free of %p, UMA's own, in zone %s", addr, zone->uz_name);
      size = zone->uz_size;
      if ((k.invariants() || zero) && reaches_beyond(word, addr, size))
        k.check_store(addr, size, zero ? "zfree" : "free");
      if (k.invariants()) free_save_type(addr, mtp, size);
      if (zero) std::memset(addr, 0, size);
      uma_zfree_arg(zone, addr, reinterpret_cast<void*>(word));
      break;
    }
    case SLAB_COOKIE_MALLOC_LARGE:
    case SLAB_COOKIE_CONTIG_MALLOC: {
      const bool large = (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_MALLOC_LARGE;
      size = large ? value : round_page(value);
      if (zero) {
        k.check_store(addr, size, "zfree");
        std::memset(addr, 0, size);
      }
      if (reinterpret_cast<std::uintptr_t>(addr) % kPageSize == 0)
        vm.page_slab[vm.page_of(addr)].store(0, std::memory_order_release);
      kmem_free(vm, addr, size);
      if (large) vm.kmem_total_sub(size);
      break;
    }
    default:
      k.panic("_free(%d): addr %p slab %p with unknown cookie %d", zero ? 1 : 0, addr,
              reinterpret_cast<void*>(word), static_cast<int>(word & SLAB_COOKIE_MASK));
  }
  type_freed(k, mtp, size, hooks);
}

}  // namespace dtmalloc

extern "C" {

DTM_HOT void* kern_malloc(std::size_t size, malloc_type* mtp, int flags) {
  return dtmalloc::hot::malloc_hot<true, true>(size, mtp, flags);
}

DTM_HOT void kern_free(void* addr, malloc_type* mtp) {
  dtmalloc::hot::free_hot<true, true>(addr, mtp);
}

DTM_HOT void* kern_malloc_nohooks(std::size_t size, malloc_type* mtp, int flags) {
  return dtmalloc::hot::malloc_hot<false, true>(size, mtp, flags);
}

DTM_HOT void kern_free_nohooks(void* addr, malloc_type* mtp) {
  dtmalloc::hot::free_hot<false, true>(addr, mtp);
}
}
