// SPDX-License-Identifier: BSD-2-Clause
// Kegs: how a slab is cut, and which slab an item comes from.
//
// Counterpart:  sys/vm/uma_core.c (keg_*, slab_*, zone_import, zone_release)
// Locking:      ud_lock; not held while pages or headers are allocated, nor in a section
// Invariants:   UMA-2, UMA-3, UMA-4 (uma_int.hpp)
// Differs:      a slab's state is not inside it
#include <algorithm>
#include <bit>
#include <cstring>

#include "sys/format.hpp"
#include "vm/uma_functions.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::size_t kSmallestUnit = 8;      // UMA_SMALLEST_UNIT
constexpr std::size_t kSlabHeader = 24;       // struct uma_slab without its bits
constexpr std::size_t kHashSlabHeader = 48;   // struct uma_hash_slab without its bits
constexpr std::uint32_t kSmallOffpage = 256;  // items of "UMA Slabs 0"
constexpr std::size_t kBlockWords = 8192;     // slab states are made in blocks of 64 KiB

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

std::size_t bit_bytes(std::uint32_t items, bool invariants) {
  return 8 * ((items + 63) / 64) * (invariants ? 2 : 1);
}

struct Candidate {
  std::uint32_t ipers = 0;
  bool offpage = false;
  std::uint64_t efficiency = 0;  // of 2^31
};

std::uint64_t efficiency_of(std::uint64_t used, std::uint64_t total) {
  return (used << 31) / total;
}

// `pad`: bytes from an item's end to the next one, which the last item does without.
Candidate inline_format(std::size_t slab, std::size_t rsize, std::size_t pad, bool invariants) {
  auto items =
      static_cast<std::uint32_t>(std::min<std::size_t>((slab + pad) / rsize, SLAB_MAX_SETSIZE));
  while (items > 0 && items * rsize - pad + slab_header_size(items, invariants) > slab) --items;
  return {items, false, efficiency_of(items * rsize, slab)};
}

Candidate offpage_format(std::size_t slab, std::size_t rsize, std::size_t pad, bool invariants) {
  const auto items =
      static_cast<std::uint32_t>(std::min<std::size_t>((slab + pad) / rsize, SLAB_MAX_SETSIZE));
  return {items, true, efficiency_of(items * rsize, slab + offpage_header_size(items, invariants))};
}

// --- slab states

std::size_t slab_words(const uma_keg& keg) {
  return sizeof(uma_slab) / 8 + bit_bytes(keg.uk_ipers, keg.vm->config.invariants) / 8;
}

uma_slab* slab_state_alloc(uma_keg& keg) {
  const std::lock_guard lock(keg.blocks_mutex);
  if (keg.spare_slabs != nullptr) {
    uma_slab* slab = keg.spare_slabs;
    keg.spare_slabs = slab->us_next;
    return slab;
  }
  const std::size_t words = slab_words(keg);
  if (keg.blocks.empty() || keg.block_used + words > kBlockWords) {
    keg.blocks.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(kBlockWords));
    keg.block_used = 0;
  }
  auto* slab = new (keg.blocks.back().get() + keg.block_used) uma_slab{};
  keg.block_used += words;
  return slab;
}

void list_insert(uma_domain& domain, uma_slab* slab, SlabList list) {
  slab->us_list = list;
  slab->us_prev = nullptr;
  slab->us_next = domain.lists[list];
  if (slab->us_next != nullptr) slab->us_next->us_prev = slab;
  domain.lists[list] = slab;
}

void list_remove(uma_domain& domain, uma_slab* slab) {
  if (slab->us_prev != nullptr)
    slab->us_prev->us_next = slab->us_next;
  else
    domain.lists[slab->us_list] = slab->us_next;
  if (slab->us_next != nullptr) slab->us_next->us_prev = slab->us_prev;
}

// Requires: ud_lock held.
uma_slab* first_slab(uma_keg& keg, uma_domain& domain, int flags) {
  if (domain.ud_free_items <= ((flags & m::USE_RESERVE) != 0 ? 0 : keg.uk_reserve)) return nullptr;
  if (domain.lists[kPartial] != nullptr) return domain.lists[kPartial];
  uma_slab* slab = domain.lists[kFree];
  if (slab == nullptr) return nullptr;
  list_remove(domain, slab);
  list_insert(domain, slab, kPartial);
  --domain.ud_free_slabs;
  return slab;
}

// The lowest free item. Requires: ud_lock held, the slab on the partial list.
void* slab_alloc_item(uma_keg& keg, uma_slab* slab) {
  uma_domain& domain = keg.domain(slab->us_domain);
  std::uint64_t* bits = slab->free_bits();
  std::size_t word = 0;
  while (bits[word] == 0) ++word;
  const auto bit = static_cast<std::size_t>(std::countr_zero(bits[word]));
  bits[word] &= bits[word] - 1;
  --slab->us_freecount;
  --domain.ud_free_items;
  if (slab->us_freecount == 0) {
    list_remove(domain, slab);
    list_insert(domain, slab, kFull);
  }
  return slab->us_data + (word * 64 + bit) * keg.uk_rsize;
}

// Requires: ud_lock held. A double free in a kernel without INVARIANTS sets a bit that is set: the
// item is then in two places, and the counts stay those of the bits.
void slab_free_item(uma_keg& keg, uma_slab* slab, void* item) {
  uma_domain& domain = keg.domain(slab->us_domain);
  const std::size_t index =
      static_cast<std::size_t>(static_cast<std::byte*>(item) - slab->us_data) / keg.uk_rsize;
  if (index >= keg.uk_ipers)  // a kernel writes past its bits
    keg.vm->cpus.panic("not modelled: an item behind the last one of its slab is freed");
  std::uint64_t& bits = slab->free_bits()[index / 64];
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((bits & bit) != 0) return;
  bits |= bit;
  ++slab->us_freecount;
  ++domain.ud_free_items;
  if (slab->us_freecount == keg.uk_ipers) {
    list_remove(domain, slab);
    list_insert(domain, slab, kFree);
    ++domain.ud_free_slabs;
  } else if (slab->us_freecount == 1) {
    list_remove(domain, slab);
    list_insert(domain, slab, kPartial);
  }
}

// Pages and header of one more slab of a domain, or null. No lock held; sleeps with M_WAITOK, for
// the header and for the pages. `waits`: the caller tries until there is one.
uma_slab* make_slab(uma_keg& keg, uma_zone* zone, int domain, int flags, bool waits) {
  Vm& vm = *keg.vm;
  flags &= ~m::ZERO;
  uma_zone* headers = (keg.uk_flags & UMA_ZFLAG_OFFPAGE) == 0 ? nullptr : slab_zone(keg);
  void* header = nullptr;
  if (headers != nullptr) {
    header = zone_alloc_item(*headers, nullptr, domain, flags);
    if (header == nullptr) return nullptr;
  }
  if ((keg.uk_flags & UMA_ZONE_NODUMP) != 0) flags |= m::NODUMP;
  if ((keg.uk_flags & UMA_ZONE_NOFREE) != 0) flags |= m::NEVERFREED;
  std::uint64_t first;
  try {
    first = keg_pages_alloc(keg, zone, domain, flags);
  } catch (...) {  // a panic while asleep
    if (header != nullptr) uma_zfree(headers, header);
    throw;
  }
  if (first == Vm::kNoPage) {
    if (header != nullptr) zone_free_item(*headers, header, nullptr, SKIP_NONE);
    return nullptr;
  }
  uma_slab* slab = slab_state_alloc(keg);
  *slab = uma_slab{};
  slab->us_freecount = keg.uk_ipers;
  slab->us_domain = static_cast<std::uint8_t>(domain);
  slab->us_keg = &keg;
  slab->us_data = vm.page_address(first);
  slab->us_header = header;
  std::uint64_t* bits = slab->free_bits();
  for (std::uint32_t item = 0; item < keg.uk_ipers; item += 64)
    bits[item / 64] = keg.uk_ipers - item >= 64 ? ~std::uint64_t{0}
                                                : (std::uint64_t{1} << (keg.uk_ipers - item)) - 1;
  if (vm.config.invariants)
    std::fill_n(slab->debug_bits(keg.uk_ipers), (keg.uk_ipers + 63u) / 64, std::uint64_t{0});
  for (std::uint64_t page = first; page < first + keg.uk_ppera; ++page) {
    vm.page_slab[page].store(reinterpret_cast<std::uintptr_t>(slab), std::memory_order_release);
    vm.set_page_zone(page, keg.page_zone);
  }
  vm.kmem_total_add(keg.uk_ppera * kPageBytes);
  // A malloc zone's items are zeroed one by one. Nobody looks at fresh headers and
  // buckets.
  if ((keg.uk_flags & (UMA_ZONE_MALLOC | UMA_ZFLAG_BUCKET | UMA_ZFLAG_INTERNAL)) == 0)
    std::memset(slab->us_data, 0, keg.uk_ppera * kPageBytes);
  if (keg.uk_init == nullptr) return slab;
  for (std::uint32_t item = 0; item < keg.uk_ipers; ++item) {
    void* const mem = slab->us_data + item * keg.uk_rsize;
    if (keg.uk_init(mem, static_cast<int>(keg.uk_size), flags) == 0) continue;
    keg_free_slab(keg, slab, item);
    if (waits)  // a kernel tries again at once, for ever
      vm.cpus.panic("not modelled: the init of keg " + std::string(keg.uk_name) +
                    " refuses an item that is waited for");
    return nullptr;
  }
  return slab;
}

uma_slab* keg_alloc_slab(uma_keg& keg, uma_zone* zone, int domain, int flags, bool waits) {
  return in_uma_as(
      KernelFunction::keg_alloc_slab, [&] { return make_slab(keg, zone, domain, flags, waits); },
      [](const uma_slab* slab) { return word_of(slab_header_at(slab)); }, &keg, zone, domain, flags,
      flags & ~m::ZERO);
}

// A slab of `domain`; its ud_lock is taken. Null: none, no lock. Who walks over domains makes a
// slab in this one before it goes on, so that the slabs spread.
uma_slab* keg_fetch_free_slab(uma_keg& keg, std::unique_lock<std::mutex>& lock, int domain,
                              int flags) {
  uma_domain& here = keg.domain(domain);
  lock = std::unique_lock(here.ud_lock);
  if (uma_slab* slab = first_slab(keg, here, flags)) return slab;
  lock.unlock();
  return nullptr;
}

uma_slab* find_slab(uma_keg& keg, uma_zone* zone, std::unique_lock<std::mutex>& lock, int wanted,
                    int flags) {
  Vm& vm = *keg.vm;
  if (vm.config.invariants && (flags & (m::WAITOK | m::NOVM)) == (m::WAITOK | m::NOVM))
    vm.cpus.panic(kernel_format(vm.addresses, "%s: invalid flags %#x", "keg_fetch_slab",
                                static_cast<unsigned>(flags)));
  // With a domain the page allocator sleeps, without one the walk over the domains does.
  vm_domainset_iter di;
  int domain = wanted;
  int asked = flags;
  bool any = wanted == UMA_ANYDOMAIN;
  if (any)
    vm_domainset_iter_policy_ref_init(di, vm, *DOMAINSET_RR(), &keg.dr_iter, &domain, &asked);
  while (true) {
    if (uma_slab* slab = keg_fetch_free_slab(keg, lock, domain, flags)) return slab;
    check_reserve_flags(vm, flags);
    const std::uint64_t seen = any ? 0 : vm.page_frees(DomainMask{1} << domain);
    uma_slab* slab = (flags & m::NOVM) != 0
                         ? nullptr
                         : keg_alloc_slab(keg, zone, domain, asked, (flags & m::WAITOK) != 0);
    if (slab != nullptr) {
      uma_domain& here = keg.domain(domain);
      lock = std::unique_lock(here.ud_lock);
      list_insert(here, slab, kPartial);
      here.ud_pages += keg.uk_ppera;
      here.ud_free_items += keg.uk_ipers;
      return slab;
    }
    if (any) {
      if (vm_domainset_iter_policy(di, &domain) != 0) break;
    } else if ((flags & m::USE_RESERVE) != 0 && vm.config.domains > 1) {
      // The other domains' reserves before anything else.
      any = true;
      vm_domainset_iter_policy_ref_init(di, vm, *DOMAINSET_RR(), &keg.dr_iter, &domain, &asked);
    } else if ((flags & m::WAITOK) != 0) {
      vm.page_wait(DomainMask{1} << domain, seen);
    } else {
      break;
    }
  }
  return keg_fetch_free_slab(keg, lock, domain, flags);
}

// A slab with a free item, ud_lock taken; or null with no lock. Sleeps if the flags allow it.
uma_slab* keg_fetch_slab(uma_keg& keg, uma_zone* zone, std::unique_lock<std::mutex>& lock,
                         int wanted, int flags) {
  return in_uma_as(
      KernelFunction::keg_fetch_slab, [&] { return find_slab(keg, zone, lock, wanted, flags); },
      [](const uma_slab* slab) { return word_of(slab_header_at(slab)); }, &keg, zone, wanted,
      flags);
}

}  // namespace

const void* slab_header_at(const uma_slab* slab) {
  constexpr std::size_t kHashLink = 24;  // struct uma_hash_slab before its slab
  if (slab == nullptr) return nullptr;
  if (slab->us_header != nullptr) return static_cast<const std::byte*>(slab->us_header) + kHashLink;
  return slab->us_data + slab->us_keg->uk_pgoff;
}

std::size_t slab_header_size(std::uint32_t items, bool invariants) {
  return round_up(kSlabHeader + bit_bytes(items, invariants), 8);
}

std::size_t offpage_header_size(std::uint32_t items, bool invariants) {
  return kHashSlabHeader +
         bit_bytes(items <= kSmallOffpage ? kSmallOffpage : SLAB_MAX_SETSIZE, invariants);
}

KegLayout keg_layout(std::size_t size, int align, bool invariants, std::uint32_t flags, int cpus,
                     bool multipage) {
  constexpr std::uint64_t kEnough = (std::uint64_t{100 - UMA_MAX_WASTE} << 31) / 100;
  const std::size_t rsize =
      round_up(std::max(size, kSmallestUnit), static_cast<std::size_t>(align) + 1);
  const std::size_t pad = rsize - size;
  const bool pcpu = (flags & UMA_ZONE_PCPU) != 0;
  const bool one_size = !multipage || (flags & (UMA_ZONE_PCPU | UMA_ZONE_CONTIG)) != 0;
  // Nobody but the user touches the pages of a NOTOUCH zone. A zone that others' headers or pages
  // depend on takes no headers from elsewhere.
  const bool may_inline = (flags & (UMA_ZONE_NOTOUCH | UMA_ZONE_PCPU)) == 0;
  const bool may_offpage = (flags & (UMA_ZONE_VM | UMA_ZFLAG_INTERNAL)) == 0;
  Candidate best;
  std::size_t best_slab = 0;
  for (std::size_t step = 1; step <= SLAB_MAX_SETSIZE; ++step) {
    // Small items: more pages. Large ones: pages for more items.
    const std::size_t slab =
        rsize <= kPageBytes ? step * kPageBytes : round_up(step * rsize - pad, kPageBytes);
    if (rsize <= kPageBytes && slab / rsize > SLAB_MAX_SETSIZE && step > 1) break;
    for (const Candidate& format : {inline_format(slab, rsize, pad, invariants),
                                    offpage_format(slab, rsize, pad, invariants)}) {
      if (!(format.offpage ? may_offpage : may_inline)) continue;
      if (format.efficiency > best.efficiency) {
        best = format;
        best_slab = slab;
      }
      if (best.efficiency >= kEnough) break;
    }
    if (best.efficiency >= kEnough || one_size) break;
  }
  KegLayout out{};
  out.rsize = static_cast<std::uint32_t>(rsize);
  out.ppera =
      pcpu ? static_cast<std::uint32_t>(cpus) : static_cast<std::uint32_t>(best_slab / kPageBytes);
  out.ipers = best.ipers;
  if (best.ipers == 0) return out;
  out.offpage = best.offpage;
  out.vtoslab = best.offpage || (best.ipers - 1) * rsize >= kPageBytes;
  out.pgoff =
      best.offpage
          ? 0
          : static_cast<std::uint32_t>(best_slab - slab_header_size(best.ipers, invariants));
  const std::size_t total =
      best_slab + (best.offpage ? offpage_header_size(best.ipers, invariants) : 0);
  out.efficiency = static_cast<std::uint32_t>(100 * best.ipers * rsize / total);
  return out;
}

void keg_prealloc_slab(uma_keg& keg) {
  vm_domainset_iter di;
  int domain;
  int flags = m::WAITOK;
  uma_slab* slab = nullptr;
  if (vm_domainset_iter_policy_ref_init(di, *keg.vm, *DOMAINSET_RR(), &keg.dr_iter, &domain,
                                        &flags) != 0)
    return;
  while ((slab = keg_alloc_slab(keg, keg.zone, domain, flags, true)) == nullptr)
    if (vm_domainset_iter_policy(di, &domain) != 0) return;
  uma_domain& here = keg.domain(domain);
  const std::lock_guard lock(here.ud_lock);
  list_insert(here, slab, kFree);
  ++here.ud_free_slabs;
  here.ud_pages += keg.uk_ppera;
  here.ud_free_items += keg.uk_ipers;
}

uma_zone* slab_zone(const uma_keg& keg) {
  return keg.vm->slab_zones[keg.uk_ipers <= kSmallOffpage ? 0 : 1];
}

static int import_items(uma_zone& zone, void** items, int max, int domain, int flags) {
  uma_keg& keg = *zone.uz_keg;
  const int domains = zone.vm->config.domains;
  // A round-robin zone changes slabs, and so domains, inside a bucket.
  const int stripe = (zone.uz_flags & UMA_ZONE_ROUNDROBIN) != 0 && domains > 1
                         ? (max + domains - 1) / domains
                         : max;
  int count = 0;
  std::unique_lock<std::mutex> lock;
  while (count < max) {
    uma_slab* slab = keg_fetch_slab(keg, &zone, lock, domain, flags);
    if (slab == nullptr) break;
    const int stop = std::min(max, count + stripe);
    uma_domain& from = keg.domain(slab->us_domain);
    do {
      items[count++] = slab_alloc_item(keg, slab);
      // One may have been the reserve's, not all.
      if (keg.uk_reserve > 0 && from.ud_free_items <= keg.uk_reserve) return count;
    } while (slab->us_freecount != 0 && count < stop);
    lock.unlock();
    flags = (flags & ~m::WAITOK) | m::NOWAIT;
  }
  return count;
}

int zone_import(uma_zone& zone, void** items, int max, int domain, int flags) {
  return in_uma(
      KernelFunction::zone_import, [&] { return import_items(zone, items, max, domain, flags); },
      &zone, items, max, domain, flags);
}

static void release_items(uma_zone& zone, void** items, int count) {
  uma_keg& keg = *zone.uz_keg;
  std::unique_lock<std::mutex> lock;
  int locked = UMA_ANYDOMAIN;
  for (int i = 0; i < count; ++i) {
    const std::uintptr_t word = keg.vm->slab_word(items[i]);
    auto* slab = reinterpret_cast<uma_slab*>(word);
    if (word == 0 || (word & SLAB_COOKIE_MASK) != SLAB_COOKIE_SLAB_PTR || slab->us_keg != &keg) {
      lock = {};
      keg.vm->cpus.panic(kernel_format(keg.vm->addresses,
                                       "not modelled: an item %p of another zone is freed to %s",
                                       items[i], zone.uz_name));
    }
    if (slab->us_domain != locked) {
      if (lock.owns_lock()) lock.unlock();
      locked = slab->us_domain;
      lock = std::unique_lock(keg.domain(locked).ud_lock);
    }
    slab_free_item(keg, slab, items[i]);
  }
}

void zone_release(uma_zone& zone, void** items, int count) {
  in_uma(
      KernelFunction::zone_release, [&] { release_items(zone, items, count); }, &zone, items,
      count);
}

}  // namespace dtmalloc
