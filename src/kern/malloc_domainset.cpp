// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) from chosen NUMA domains, and what is built on it: alignment, executable memory,
// contiguous memory. The functions without a set of domains ask all of them, round-robin.
//
// Counterpart:  sys/kern/kern_malloc.c (malloc_domainset*, malloc_aligned, malloc_exec,
//               mallocarray_domainset, contigmalloc*)
// Locking:      none; see malloc.cpp
// Differs:      DEVIATES: a size above 2^63 is refused by malloc_aligned as by malloc: a kernel
//               shifts it out and hands out a small block
#include <bit>

#include "kern/kernel_impl.hpp"
#include "kern/ledger_impl.hpp"

namespace dtmalloc {
namespace {

void* from_domains(Kernel::Impl& k, std::size_t size, malloc_type* mtp, const domainset& ds,
                   int flags, const char* name) {
  const std::size_t osize = size;
  void* item = nullptr;
  if (failure_planned(k, mtp, flags)) return nullptr;
  if (malloc_dbg(k, &item, &size, mtp, flags)) return item;
  if (size > k.kmem_zmax || (flags & kM_EXEC) != 0) {
    const domainset& asked = k.release.large_by_domainset ? ds : *DOMAINSET_RR();
    return redzone_setup(k, malloc_large(k, size, mtp, asked, flags, name, true), osize);
  }
  const Note note(name, osize, mtp, flags);
  // The walk asks without waiting and waits between its sweeps. M_WAITOK is gone from the flags
  // then, so nobody asserts that there is a block.
  int zindx = -1;
  std::size_t recorded = 0;
  vm_domainset_iter di;
  int domain;
  if (vm_domainset_iter_policy_init(di, *k.vm, ds, &domain, &flags) == 0) {
    zindx = static_cast<int>(k.zindx_of(size));
    uma_zone* zone = k.kz_zone(*mtp, static_cast<std::size_t>(zindx));
    do item = uma_zalloc_domain(zone, ctor_argument(k, zone), domain, flags);
    while (item == nullptr && vm_domainset_iter_policy(di, &domain) == 0);
    if (item != nullptr) recorded = zone->uz_size;
  }
  malloc_type_zone_allocated(k, mtp, recorded, zindx);
  return redzone_setup(k, item, osize);
}

void* malloc_domainset(Kernel::Impl& k, std::size_t size, malloc_type* mtp, const domainset& ds,
                       int flags, const char* name) {
  return in_function(
      KernelFunction::malloc_domainset, [&] { return from_domains(k, size, mtp, ds, flags, name); },
      size, mtp, &ds, flags);
}

void* malloc_domainset_exec(Kernel::Impl& k, std::size_t size, malloc_type* mtp,
                            const domainset& ds, int flags, const char* name) {
  return in_function(
      KernelFunction::malloc_domainset_exec,
      [&] { return from_domains(k, size, mtp, ds, flags | kM_EXEC, name); }, size, mtp, &ds, flags);
}

void* aligned_from_domains(Kernel::Impl& k, std::size_t size, std::size_t align, malloc_type* mtp,
                           const domainset& ds, int flags, const char* name) {
  const bool power = (align & (align - 1)) == 0;  // 0 passes
  if (k.invariants() && !power)
    k.panic("malloc_domainset_aligned: wrong align %#zx size %#zx", align, size);
  if (k.invariants() && align > kPageSize)
    k.panic("malloc_domainset_aligned: align %#zx (size %#zx) too large", align, size);
  const Note note(name, size, mtp, flags);
  if (size == 0) size = 1;
  constexpr std::size_t kLargestPower = std::size_t{1} << 63;
  const std::size_t asize = size <= align           ? align
                            : size <= kLargestPower ? std::bit_ceil(size)
                                                    : SIZE_MAX;
  void* block = malloc_domainset(k, asize, mtp, ds, flags, name);
  if (k.invariants() && block != nullptr &&
      (align == 0 || reinterpret_cast<std::uintptr_t>(block) % align != 0))
    k.panic("malloc_domainset_aligned: result not aligned %p size %#zx allocsize %#zx align %#zx",
            block, size, asize, align);
  return block;
}

void* malloc_domainset_aligned(Kernel::Impl& k, std::size_t size, std::size_t align,
                               malloc_type* mtp, const domainset& ds, int flags, const char* name) {
  return in_function(
      KernelFunction::malloc_domainset_aligned,
      [&] { return aligned_from_domains(k, size, align, mtp, ds, flags, name); }, size, align, mtp,
      &ds, flags);
}

// `ds` null: whichever domain.
void* contigmalloc_from(Kernel::Impl& k, std::size_t size, malloc_type* mtp, const domainset* ds,
                        int flags, std::uint64_t low, std::uint64_t high, std::size_t alignment,
                        std::uint64_t boundary, const char* name) {
  if (failure_planned(k, mtp, flags)) return nullptr;
  check_type(k, mtp, "contigmalloc");
  const bool powers = (alignment & (alignment - 1)) == 0 && (boundary & (boundary - 1)) == 0;
  if (size == 0 || !powers) {
    if (k.invariants())
      k.panic("not modelled: contigmalloc: size %#lx alignment %#lx boundary %#lx", size, alignment,
              boundary);
    return nullptr;
  }
  const std::size_t osize = size;
  if (k.release.contig_redzone) size = redzone_size(k, size);
  const Note note(name, osize, mtp, flags);
  void* addr = ds == nullptr ? kmem_alloc_contig(*k.vm, size, flags, low, high, alignment, boundary)
                             : kmem_alloc_contig_domainset(*k.vm, *ds, size, flags, low, high,
                                                           alignment, boundary);
  if (addr == nullptr) return nullptr;
  k.vm->page_slab[k.vm->page_of(addr)].store(size << SLAB_COOKIE_SHIFT | SLAB_COOKIE_CONTIG_MALLOC,
                                             std::memory_order_release);
  malloc_type_zone_allocated(k, mtp, round_page(size), -1);
  return k.release.contig_redzone ? redzone_setup(k, addr, osize) : addr;
}

}  // namespace
}  // namespace dtmalloc

using dtmalloc::enter_kernel;
using dtmalloc::in_function;
using dtmalloc::Kernel;
using dtmalloc::KernelFunction;
using dtmalloc::note_allocation;

extern "C" {

void* kern_malloc_domainset(std::size_t size, malloc_type* mtp, const domainset* ds, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  return note_allocation(
      *k, dtmalloc::malloc_domainset(*k, size, mtp, *ds, flags, "malloc_domainset"), size, mtp);
}

void* kern_malloc_domainset_exec(std::size_t size, malloc_type* mtp, const domainset* ds,
                                 int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  return note_allocation(
      *k, dtmalloc::malloc_domainset_exec(*k, size, mtp, *ds, flags, "malloc_domainset_exec"), size,
      mtp);
}

void* kern_malloc_exec(std::size_t size, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  void* block = in_function(
      KernelFunction::malloc_exec,
      [&] {
        return dtmalloc::malloc_domainset_exec(*k, size, mtp, *DOMAINSET_RR(), flags,
                                               "malloc_exec");
      },
      size, mtp, flags);
  return note_allocation(*k, block, size, mtp);
}

void* kern_malloc_domainset_aligned(std::size_t size, std::size_t align, malloc_type* mtp,
                                    const domainset* ds, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  return note_allocation(*k,
                         dtmalloc::malloc_domainset_aligned(*k, size, align, mtp, *ds, flags,
                                                            "malloc_domainset_aligned"),
                         size, mtp);
}

void* kern_malloc_aligned(std::size_t size, std::size_t align, malloc_type* mtp, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  void* block = in_function(
      KernelFunction::malloc_aligned,
      [&] {
        return dtmalloc::malloc_domainset_aligned(*k, size, align, mtp, *DOMAINSET_RR(), flags,
                                                  "malloc_aligned");
      },
      size, align, mtp, flags);
  return note_allocation(*k, block, size, mtp);
}

void* kern_mallocarray_domainset(std::size_t nmemb, std::size_t size, malloc_type* mtp,
                                 const domainset* ds, int flags) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  return in_function(
      KernelFunction::mallocarray_domainset,
      [&]() -> void* {
        if (dtmalloc::would_overflow(nmemb, size))
          k->panic("mallocarray_domainset: %zu * %zu overflowed", nmemb, size);
        return note_allocation(
            *k,
            dtmalloc::malloc_domainset(*k, nmemb * size, mtp, *ds, flags, "mallocarray_domainset"),
            nmemb * size, mtp);
      },
      nmemb, size, mtp, ds, flags);
}

void* kern_contigmalloc_domainset(unsigned long size, malloc_type* mtp, const domainset* ds,
                                  int flags, std::uint64_t low, std::uint64_t high,
                                  unsigned long alignment, std::uint64_t boundary) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  void* block = in_function(
      KernelFunction::contigmalloc_domainset,
      [&] {
        return dtmalloc::contigmalloc_from(*k, size, mtp, ds, flags, low, high, alignment, boundary,
                                           "contigmalloc_domainset");
      },
      size, mtp, ds, flags, low, high, alignment, boundary);
  return note_allocation(*k, block, size, mtp);
}

void* kern_contigmalloc(unsigned long size, malloc_type* mtp, int flags, std::uint64_t low,
                        std::uint64_t high, unsigned long alignment, std::uint64_t boundary) {
  Kernel::Impl* k = enter_kernel();
  if (k == nullptr) return nullptr;
  void* block = in_function(
      KernelFunction::contigmalloc,
      [&] {
        return dtmalloc::contigmalloc_from(*k, size, mtp, nullptr, flags, low, high, alignment,
                                           boundary, "contigmalloc");
      },
      size, mtp, flags, low, high, alignment, boundary);
  return note_allocation(*k, block, size, mtp);
}
}
