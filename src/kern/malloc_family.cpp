// SPDX-License-Identifier: BSD-2-Clause
// The rest of malloc(9): zfree, realloc, arrays, alignment, contiguous memory, manual accounting.
//
// Counterpart:  sys/kern/kern_malloc.c
// Locking:      none; see malloc.cpp
// Differs:      one domain. DEVIATES: a size above 2^63 is refused by malloc_aligned as by malloc:
// a
//               kernel shifts it out and hands out a small block
#include <algorithm>
#include <bit>
#include <cstring>

#include "kern/kernel_impl.hpp"
#include "kern/ledger_impl.hpp"
#include "kern/redzone.hpp"
#include "vm/memguard.hpp"

namespace dtmalloc {
namespace {

// spec/malloc9.md 3.6: the size of the block as realloc sees it; 0: a contiguous one.
std::size_t old_size(Kernel::Impl& k, const void* addr) {
  const std::uintptr_t word = k.slab_word(addr);
  if (word == 0) {
    if (k.invariants()) k.panic("realloc: address %p out of range", addr);
    k.panic("realloc: address %p is not allocated", addr);
  }
  switch (word & SLAB_COOKIE_MASK) {
    case SLAB_COOKIE_SLAB_PTR:
      return reinterpret_cast<uma_slab*>(word)->us_keg->zone->uz_size;
    case SLAB_COOKIE_MALLOC_LARGE:
      return word >> SLAB_COOKIE_SHIFT;
    default:
      if (k.invariants())
        k.panic("realloc: called for addr %p of unsupported allocation type; slab %p cookie %d",
                addr, reinterpret_cast<void*>(word), static_cast<int>(word & SLAB_COOKIE_MASK));
      return 0;
  }
}

constexpr std::size_t kMinAllocSize = 8;  // MINALLOCSIZE
constexpr int kReallocFraction = 1;       // REALLOC_FRACTION

void* realloc_slow(Kernel::Impl& k, void* addr, std::size_t size, malloc_type* mtp, int flags) {
  if (k.invariants()) {
    check_type(k, mtp, "realloc");
    if (curcpu->critbase != 0) k.panic("realloc: called with spinlock or critical section held");
  }
  if (addr == nullptr) return kern_malloc(size, mtp, flags);
  const Note note("realloc", size, mtp, flags);
  if (Memguard* memguard = k.vm->memguard.get(); memguard != nullptr && memguard->owns(addr))
    return memguard->realloc(addr, size, flags);
  std::size_t old;
  if (k.redzone != nullptr) {  // never in place
    old = k.redzone->get_size(addr);
    if (const std::size_t copied = std::min(size, old)) k.check_mapped(addr, copied, false);
  } else {
    old = old_size(k, addr);
    if (old == 0) return nullptr;
    if (size <= old && (size > old >> kReallocFraction || old == kMinAllocSize)) return addr;
  }
  void* block = kern_malloc(size, mtp, flags);
  if (block == nullptr) return nullptr;
  std::memcpy(block, addr, std::min(size, old));
  kern_free(addr, mtp);
  return block;
}

// contigfree(9) of releases whose pages do not tell contiguous memory: the caller's size is what is
// freed and counted.
void contigfree_by_size(Kernel::Impl& k, void* addr, std::size_t size, malloc_type* mtp) {
  const FreeNote note(k, addr, mtp);
  check_type(k, mtp, "contigfree");
  if (addr == nullptr) k.panic("page fault: contigfree of NULL");
  Vm& vm = *k.vm;
  const std::uintptr_t word = vm.slab_word(addr);
  if ((word & SLAB_COOKIE_MASK) != SLAB_COOKIE_CONTIG_MALLOC)
    k.panic("not modelled: contigfree of %p, which contigmalloc did not give", addr);
  const std::size_t pages = round_page(word >> SLAB_COOKIE_SHIFT);
  if (round_page(size) != pages)
    k.panic("not modelled: contigfree of %zu bytes of a block of %zu", size, pages);
  vm.page_slab[vm.page_of(addr)].store(0, std::memory_order_release);
  kmem_free(vm, addr, pages);
  type_freed(k, mtp, pages);
}

bool would_overflow(std::size_t nmemb, std::size_t size) {
  constexpr std::size_t kSafe = std::size_t{1} << 32;
  return (nmemb >= kSafe || size >= kSafe) && nmemb > 0 && SIZE_MAX / nmemb < size;
}

}  // namespace
}  // namespace dtmalloc

using dtmalloc::enter_kernel;
using dtmalloc::Kernel;

extern "C" {

void kern_zfree(void* addr, malloc_type* mtp) {
  if (Kernel::Impl* k = enter_kernel()) dtmalloc::free_slow(*k, addr, mtp, true, true);
}

void* kern_realloc(void* addr, std::size_t size, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  void* block = dtmalloc::realloc_slow(*k, addr, size, mtp, flags);
  if (k->ledger != nullptr && addr != nullptr && block != nullptr)
    k->ledger->impl().resized(mtp, addr, block, size);
  return block;
}

void* kern_reallocf(void* addr, std::size_t size, malloc_type* mtp, int flags) {
  void* block = kern_realloc(addr, size, mtp, flags);
  if (block == nullptr) kern_free(addr, mtp);
  return block;
}

void* kern_mallocarray(std::size_t nmemb, std::size_t size, malloc_type* mtp, int flags) {
  if (dtmalloc::would_overflow(nmemb, size)) {
    Kernel::Impl* k = enter_kernel();
    if (k == nullptr) return nullptr;
    k->panic("mallocarray: %zu * %zu overflowed", nmemb, size);
  }
  return kern_malloc(nmemb * size, mtp, flags);
}

void* kern_malloc_aligned(std::size_t size, std::size_t align, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr || dtmalloc::failure_planned(*k, mtp, flags)) return nullptr;
  const std::size_t request = size;
  const bool power = (align & (align - 1)) == 0;  // 0 passes
  if (k->invariants() && !power)
    k->panic("malloc_domainset_aligned: wrong align %#zx size %#zx", align, size);
  if (k->invariants() && align > dtmalloc::kPageSize)
    k->panic("malloc_domainset_aligned: align %#zx (size %#zx) too large", align, size);
  const dtmalloc::Note note("malloc_aligned", size, mtp, flags);
  if (size == 0) size = 1;
  constexpr std::size_t kLargestPower = std::size_t{1} << 63;
  const std::size_t asize = size <= align           ? align
                            : size <= kLargestPower ? std::bit_ceil(size)
                                                    : SIZE_MAX;
  void* block = dtmalloc::malloc_domainset(*k, asize, mtp, flags, "malloc_aligned");
  if (k->invariants() && block != nullptr &&
      (align == 0 || reinterpret_cast<std::uintptr_t>(block) % align != 0))
    k->panic("malloc_domainset_aligned: result not aligned %p size %#zx allocsize %#zx align %#zx",
             block, size, asize, align);
  return dtmalloc::note_allocation(*k, block, request, mtp);
}

void* kern_malloc_exec(std::size_t size, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr || dtmalloc::failure_planned(*k, mtp, flags)) return nullptr;
  return dtmalloc::note_allocation(
      *k, dtmalloc::malloc_domainset(*k, size, mtp, flags | dtmalloc::kM_EXEC, "malloc_exec"), size,
      mtp);
}

void* kern_contigmalloc(unsigned long size, malloc_type* mtp, int flags, std::uint64_t low,
                        std::uint64_t high, unsigned long alignment, std::uint64_t boundary) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr || dtmalloc::failure_planned(*k, mtp, flags)) return nullptr;
  dtmalloc::check_type(*k, mtp, "contigmalloc");
  const bool powers = (alignment & (alignment - 1)) == 0 && (boundary & (boundary - 1)) == 0;
  if (size == 0 || !powers) {
    if (k->invariants())
      k->panic("contigmalloc: size %#lx alignment %#lx boundary %#lx", size, alignment, boundary);
    return nullptr;
  }
  const unsigned long osize = size;
  if (k->release.contig_redzone) size = dtmalloc::redzone_size(*k, size);
  const dtmalloc::Note note("contigmalloc", osize, mtp, flags);
  void* addr = dtmalloc::kmem_alloc_contig(*k->vm, size, flags, low, high, alignment, boundary);
  if (addr == nullptr) return nullptr;
  k->vm->page_slab[k->vm->page_of(addr)].store(
      size << dtmalloc::SLAB_COOKIE_SHIFT | dtmalloc::SLAB_COOKIE_CONTIG_MALLOC,
      std::memory_order_release);
  dtmalloc::malloc_type_zone_allocated(*k, mtp, dtmalloc::round_page(size), -1);
  if (k->release.contig_redzone) addr = dtmalloc::redzone_setup(*k, addr, osize);
  return dtmalloc::note_allocation(*k, addr, osize, mtp);
}

void kern_contigfree(void* addr, unsigned long size, malloc_type* mtp) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return;
  if (k->release.contig_cookie) return kern_free(addr, mtp);
  dtmalloc::contigfree_by_size(*k, addr, size, mtp);
}

std::size_t kern_malloc_size(std::size_t size) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return 0;
  if (size > k->kmem_zmax) return k->release.size_of_large ? dtmalloc::round_page(size) : 0;
  return k->classes[k->zindx_of(size)];
}

std::size_t kern_malloc_usable_size(const void* addr) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr || addr == nullptr) return 0;
  if (dtmalloc::Memguard* memguard = k->vm->memguard.get();
      memguard != nullptr && memguard->owns(addr))
    return memguard->req_size(addr);
  if (k->redzone != nullptr) return k->redzone->get_size(addr);
  const std::uintptr_t word = k->slab_word(addr);
  if (word == 0)
    k->panic("malloc_usable_size: address %p(%p) is not allocated", addr,
             reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(addr) &
                                     ~(dtmalloc::kPageSize - 1)));
  if ((word & dtmalloc::SLAB_COOKIE_MASK) == dtmalloc::SLAB_COOKIE_SLAB_PTR)
    return reinterpret_cast<dtmalloc::uma_slab*>(word)->us_keg->zone->uz_size;
  return dtmalloc::round_page(word >> dtmalloc::SLAB_COOKIE_SHIFT);
}

void kern_malloc_type_allocated(malloc_type* mtp, unsigned long size) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr || size == 0) return;
  dtmalloc::check_type(*k, mtp, "malloc_type_allocated");
  dtmalloc::malloc_type_zone_allocated(*k, mtp, size, -1);
  dtmalloc::note_manual(*k, mtp, 1, static_cast<std::int64_t>(size));
}

void kern_malloc_type_freed(malloc_type* mtp, unsigned long size) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return;
  dtmalloc::check_type(*k, mtp, "malloc_type_freed");
  dtmalloc::type_freed(*k, mtp, size);
  dtmalloc::note_manual(*k, mtp, -1, -static_cast<std::int64_t>(size));
}

void kern_malloc_init(void* type) {
  if (Kernel::Impl* k = enter_kernel()) k->self.malloc_init(static_cast<malloc_type*>(type));
}

void kern_malloc_uninit(void* type) {
  if (Kernel::Impl* k = enter_kernel()) k->self.malloc_uninit(static_cast<malloc_type*>(type));
}

malloc_type* kern_malloc_desc2type(const char* desc) {
  Kernel::Impl* k = enter_kernel();
  return k == nullptr ? nullptr : k->self.type(desc);
}

void kern_malloc_type_list(void (*func)(malloc_type*, void*), void* arg) {
  if (Kernel::Impl* k = enter_kernel())
    k->self.malloc_type_list([&](malloc_type* mtp) { func(mtp, arg); });
}
}
