// SPDX-License-Identifier: BSD-2-Clause
// Where a keg's pages come from and go to.
//
// Counterpart:  sys/vm/uma_core.c (page_alloc, page_free, pcpu_page_alloc, contig_alloc),
//               sys/amd64/amd64/uma_machdep.c
// Differs:      one supply, whatever the function; uk_allocf is chosen anew for each slab
#include "vm/uma_functions.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

enum : std::uint8_t { UMA_SLAB_KERNEL = 0x04, UMA_SLAB_PRIV = 0x08 };

// Whether a kernel has functions of their own for such pages, which are not modelled.
bool special(const uma_keg& keg) { return (keg.uk_flags & (UMA_ZONE_PCPU | UMA_ZONE_CONTIG)) != 0; }

}  // namespace

std::uint64_t keg_pages_alloc(uma_keg& keg, uma_zone* zone, int domain, int flags) {
  Vm& vm = *keg.vm;
  if (special(keg)) return vm.page_alloc(domain, keg.uk_ppera, flags);
  std::uint64_t first = Vm::kNoPage;
  const auto take = [&]() -> void* {
    first = vm.page_alloc(domain, keg.uk_ppera, flags);
    return first == Vm::kNoPage ? nullptr : vm.page_address(first);
  };
  const std::size_t size = keg.uk_ppera * kPageBytes;
  void* const no_flags = nullptr;  // the caller's variable has no address
  if (keg.uk_ppera == 1) {
    in_uma(KernelFunction::uma_small_alloc, take, zone, size, domain, no_flags, flags);
    return first;
  }
  in_uma(
      KernelFunction::page_alloc,
      [&] {
        return in_uma(KernelFunction::kmem_malloc_domainset, take, DOMAINSET_FIXED(domain), size,
                      flags);
      },
      zone, size, domain, no_flags, flags);
  return first;
}

void keg_pages_free(uma_keg& keg, std::uint64_t first) {
  Vm& vm = *keg.vm;
  const auto give = [&] { vm.page_free(first, keg.uk_ppera); };
  if (special(keg)) return give();
  void* const mem = vm.page_address(first);
  const std::size_t size = keg.uk_ppera * kPageBytes;
  if (keg.uk_ppera == 1)
    return in_uma(KernelFunction::uma_small_free, give, mem, size, UMA_SLAB_PRIV);
  in_uma(
      KernelFunction::page_free, [&] { in_uma(KernelFunction::kmem_free, give, mem, size); }, mem,
      size, UMA_SLAB_KERNEL);
}

}  // namespace dtmalloc
