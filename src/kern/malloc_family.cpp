// SPDX-License-Identifier: BSD-2-Clause
// The rest of malloc(9): zfree, realloc, arrays, sizes, manual accounting.
//
// Counterpart:  sys/kern/kern_malloc.c
// Locking:      none; see malloc.cpp
#include <algorithm>
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
    k.panic("page fault: realloc of %p, which is not allocated", addr);
  }
  switch (word & SLAB_COOKIE_MASK) {
    case SLAB_COOKIE_SLAB_PTR:
      if (k.is_machinery(word))
        k.panic("not modelled: realloc of %p, UMA's own, in zone %s", addr,
                k.keg_at(word).zone->uz_name);
      return k.keg_at(word).zone->uz_size;
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
    check_version(k, mtp, "realloc");
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
  if (const std::size_t copied = std::min(size, old)) k.check_mapped(addr, copied, false);
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
  in_function(
      KernelFunction::malloc_type_freed, [&] { type_freed(k, mtp, pages); }, mtp, pages);
}

std::size_t usable_size(Kernel::Impl& k, const void* addr) {
  if (addr == nullptr) return 0;
  if (Memguard* memguard = k.vm->memguard.get(); memguard != nullptr && memguard->owns(addr))
    return memguard->req_size(addr);
  if (k.redzone != nullptr) return k.redzone->get_size(addr);
  const std::uintptr_t word = k.slab_word(addr);
  if (word == 0)
    k.panic("malloc_usable_size: address %p(%p) is not allocated", addr,
            reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(addr) & ~(kPageSize - 1)));
  if ((word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR)
    return reinterpret_cast<uma_slab*>(word)->us_keg->zone->uz_size;
  return round_page(word >> SLAB_COOKIE_SHIFT);
}

}  // namespace
}  // namespace dtmalloc

using dtmalloc::enter_kernel;
using dtmalloc::in_function;
using dtmalloc::Kernel;
using dtmalloc::KernelFunction;

extern "C" {

void kern_zfree(void* addr, malloc_type* mtp) {
  if (Kernel::Impl* k = enter_kernel())
    in_function(
        KernelFunction::zfree, [&] { dtmalloc::free_slow(*k, addr, mtp, true, true); }, addr, mtp);
}

void* kern_realloc(void* addr, std::size_t size, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  void* block = in_function(
      KernelFunction::realloc, [&] { return dtmalloc::realloc_slow(*k, addr, size, mtp, flags); },
      addr, size, mtp, flags);
  if (k->ledger != nullptr && addr != nullptr && block != nullptr)
    k->ledger->impl().resized(mtp, addr, block, size);
  return block;
}

void* kern_reallocf(void* addr, std::size_t size, malloc_type* mtp, int flags) {
  if (enter_kernel() == nullptr) return nullptr;
  return in_function(
      KernelFunction::reallocf,
      [&] {
        void* block = kern_realloc(addr, size, mtp, flags);
        if (block == nullptr) kern_free(addr, mtp);
        return block;
      },
      addr, size, mtp, flags);
}

void* kern_mallocarray(std::size_t nmemb, std::size_t size, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  return in_function(
      KernelFunction::mallocarray,
      [&] {
        if (dtmalloc::would_overflow(nmemb, size))
          k->panic("mallocarray: %zu * %zu overflowed", nmemb, size);
        return kern_malloc(nmemb * size, mtp, flags);
      },
      nmemb, size, mtp, flags);
}

void kern_contigfree(void* addr, unsigned long size, malloc_type* mtp) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return;
  in_function(
      KernelFunction::contigfree,
      [&] {
        if (k->release.contig_cookie) return kern_free(addr, mtp);
        dtmalloc::contigfree_by_size(*k, addr, size, mtp);
      },
      addr, size, mtp);
}

std::size_t kern_malloc_size(std::size_t size) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return 0;
  return in_function(
      KernelFunction::malloc_size,
      [&]() -> std::size_t {
        if (size > k->kmem_zmax) return k->release.size_of_large ? dtmalloc::round_page(size) : 0;
        return k->classes[k->zindx_of(size)];
      },
      size);
}

std::size_t kern_malloc_usable_size(const void* addr) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return 0;
  return in_function(
      KernelFunction::malloc_usable_size, [&] { return dtmalloc::usable_size(*k, addr); }, addr);
}

void kern_malloc_type_allocated(malloc_type* mtp, unsigned long size) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return;
  in_function(
      KernelFunction::malloc_type_allocated,
      [&] {
        if (size == 0) return;
        dtmalloc::check_type(*k, mtp, "malloc_type_allocated");
        dtmalloc::malloc_type_zone_allocated(*k, mtp, size, -1);
        dtmalloc::note_manual(*k, mtp, 1, static_cast<std::int64_t>(size));
      },
      mtp, size);
}

void kern_malloc_type_freed(malloc_type* mtp, unsigned long size) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return;
  in_function(
      KernelFunction::malloc_type_freed,
      [&] {
        dtmalloc::check_type(*k, mtp, "malloc_type_freed");
        dtmalloc::type_freed(*k, mtp, size);
        dtmalloc::note_manual(*k, mtp, -1, -static_cast<std::int64_t>(size));
      },
      mtp, size);
}

void kern_malloc_init(void* type) {
  if (Kernel::Impl* k = enter_kernel()) k->self.malloc_init(static_cast<malloc_type*>(type));
}

void kern_malloc_uninit(void* type) {
  if (Kernel::Impl* k = enter_kernel()) k->self.malloc_uninit(static_cast<malloc_type*>(type));
}

malloc_type* kern_malloc_desc2type(const char* desc) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  if ((dtmalloc::curcpu->guard.load(std::memory_order_relaxed) & dtmalloc::kGuardTwin) != 0)
    desc = dtmalloc::uma_text(*k->vm, desc);
  return in_function(
      KernelFunction::malloc_desc2type, [&] { return k->self.type(desc); }, desc);
}

void kern_malloc_type_list(void (*func)(malloc_type*, void*), void* arg) {
  if (Kernel::Impl* k = enter_kernel())
    k->self.malloc_type_list([&](malloc_type* mtp) { func(mtp, arg); });
}
}
