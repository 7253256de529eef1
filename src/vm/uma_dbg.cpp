// SPDX-License-Identifier: BSD-2-Clause
// INVARIANTS: the assertions of each call; a second bit for each item of a slab, which says whether
// it is allocated; junk in the free items of zones that have no init of their own.
//
// Counterpart:  sys/vm/uma_core.c (uma_dbg_*, uma_zalloc_debug), uma_dbg.c (trash_*)
// Locking:      none; the bits change atomically
// Differs:      bad wait flags print the call sites of the simulated thread
#include <cstring>

#include "sys/format.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kTrash = 0xdeadc0dedeadc0de;

// Null: no slab covers the item.
uma_slab* slab_of(uma_zone& zone, const void* item) {
  const std::uintptr_t word = zone.vm->slab_word(item);
  return (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR ? reinterpret_cast<uma_slab*>(word)
                                                           : nullptr;
}

[[noreturn]] void bad_item(uma_zone& zone, const char* what, const void* item, const uma_slab& slab,
                           std::size_t index) {
  zone.vm->cpus.panic(kernel_format(zone.vm->addresses, "%s of %p from zone %p(%s) slab %p(%d)",
                                    what, item, static_cast<const void*>(&zone), zone.uz_name,
                                    slab_header_at(&slab), static_cast<int>(index)));
}

std::size_t index_of(const uma_slab& slab, const void* item) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(item) - slab.us_data) /
         slab.us_keg->uk_rsize;
}

std::atomic_ref<std::uint64_t> word_of(uma_slab& slab, std::size_t index) {
  return std::atomic_ref(slab.debug_bits(slab.us_keg->uk_ipers)[index / 64]);
}

}  // namespace

void uma_dbg_alloc(uma_zone& zone, void* item) {
  uma_slab* slab = slab_of(zone, item);
  if (slab == nullptr)
    zone.vm->cpus.panic(kernel_format(zone.vm->addresses, "uma: item %p did not belong to zone %s",
                                      item, zone.uz_name));
  const std::size_t index = index_of(*slab, item);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((word_of(*slab, index).fetch_or(bit) & bit) != 0)
    bad_item(zone, "Duplicate alloc", item, *slab, index);
}

void uma_dbg_free(uma_zone& zone, void* item) {
  uma_slab* slab = slab_of(zone, item);
  if (slab == nullptr || slab->us_keg != zone.uz_keg)
    zone.vm->cpus.panic(kernel_format(
        zone.vm->addresses, "uma: Freed item %p did not belong to zone %s", item, zone.uz_name));
  const std::size_t index = index_of(*slab, item);
  const uma_keg& keg = *slab->us_keg;
  if (index >= keg.uk_ipers) bad_item(zone, "Invalid free", item, *slab, index);
  if (slab->us_data + index * keg.uk_rsize != item)
    bad_item(zone, "Unaligned free", item, *slab, index);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((word_of(*slab, index).fetch_and(~bit) & bit) == 0)
    bad_item(zone, "Duplicate free", item, *slab, index);
}

// spec/malloc9.md 5.9: every dbg_divisor-th item is checked, by its number in the machine.
bool uma_dbg_kskip(uma_keg& keg, const void* item) {
  Vm& vm = *keg.vm;
  if (vm.dbg_divisor == 0) return true;
  if (vm.dbg_divisor == 1) return false;
  const std::uint64_t at = vm.addresses.to_simulated(item);
  std::uint64_t index = at / kPageBytes;
  if (keg.uk_ipers > 1) index = index * keg.uk_ipers + at % kPageBytes / keg.uk_rsize;
  const bool skip = index % vm.dbg_divisor != 0;
  (skip ? vm.dbg_skipped : vm.dbg_trashed).fetch_add(1, std::memory_order_relaxed);
  return skip;
}

bool uma_dbg_skip(uma_zone& zone, const void* item) {
  return zone.uz_keg == nullptr || uma_dbg_kskip(*zone.uz_keg, item);
}

void uma_zalloc_debug(uma_zone& zone, int flags) {
  CpuSet& cpus = zone.vm->cpus;
  if ((flags & m::EXEC) != 0) cpus.panic("uma_zalloc_debug: called with M_EXEC");
  if (curcpu->critbase != 0)
    cpus.panic("uma_zalloc_debug: called within spinlock or critical section");
  if ((zone.uz_flags & UMA_ZONE_PCPU) != 0 && (flags & m::ZERO) != 0)
    cpus.panic("uma_zalloc_debug: allocating from a pcpu zone with M_ZERO");
  constexpr int kMaxBadFlags = 10;
  const int wait = flags & (m::WAITOK | m::NOWAIT);
  if ((wait == 0 || wait == (m::WAITOK | m::NOWAIT)) &&
      zone.vm->bad_wait_flags.fetch_add(1) < kMaxBadFlags) {
    std::string text = "uma_zalloc* called with bad WAIT flags:\n";
    const std::vector<std::string>& sites = cpus.current_thread().call_sites;
    for (auto site = sites.rbegin(); site != sites.rend(); ++site) text += "  at " + *site + "\n";
    cpus.console(text);
  }
}

void uma_zfree_debug(uma_zone& zone) {
  if (curcpu->critbase != 0)
    zone.vm->cpus.panic("uma_zfree_debug: called with spinlock or critical section held");
}

void trash_check(Vm& vm, const void* mem, std::size_t size, const char* zone) {
  const auto* words = static_cast<const std::byte*>(mem);
  for (std::size_t at = 0; at + 8 <= size; at += 8) {
    unsigned long word;
    std::memcpy(&word, words + at, 8);
    if (word == kTrash) continue;
    vm.cpus.panic(kernel_format(vm.addresses, "Memory modified after free %p (%d, %s) + %d = %lx\n",
                                mem, static_cast<int>(size), zone, static_cast<int>(at), word));
  }
}

void trash_fill(void* mem, std::size_t size) {
  auto* words = static_cast<std::byte*>(mem);
  for (std::size_t at = 0; at + 8 <= size; at += 8) std::memcpy(words + at, &kTrash, 8);
}

void trash_attach(uma_zone& zone) {
  zone.uz_flags |= UMA_ZFLAG_TRASH | UMA_ZFLAG_CTORDTOR;
  zone.uz_keg->uk_init = [](void* mem, int size, int) {
    trash_fill(mem, static_cast<std::size_t>(size));
    return 0;
  };
  zone.uz_keg->trash = true;
}

}  // namespace dtmalloc
