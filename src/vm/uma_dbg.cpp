// SPDX-License-Identifier: BSD-2-Clause
// INVARIANTS: a second bit for each item of a slab says whether it is allocated.
//
// Counterpart:  sys/vm/uma_core.c (uma_dbg_alloc, uma_dbg_free)
// Locking:      none; the bits change atomically
// Differs:      no divisor: every item is checked
#include "sys/format.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

// Null: no slab covers the item.
uma_slab* slab_of(uma_zone& zone, const void* item) {
  const std::uintptr_t word = zone.vm->slab_word(item);
  return (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR ? reinterpret_cast<uma_slab*>(word)
                                                           : nullptr;
}

// Where a kernel has the slab's header.
const void* header_of(const uma_slab& slab) {
  constexpr std::size_t kHashLink = 24;  // struct uma_hash_slab before its slab
  if (slab.us_header != nullptr) return static_cast<const std::byte*>(slab.us_header) + kHashLink;
  return slab.us_data + slab.us_keg->uk_pgoff;
}

[[noreturn]] void bad_item(uma_zone& zone, const char* what, const void* item, const uma_slab& slab,
                           std::size_t index) {
  zone.vm->cpus.panic(kernel_format(zone.vm->addresses, "%s of %p from zone %p(%s) slab %p(%d)",
                                    what, item, static_cast<const void*>(&zone),
                                    zone.uz_name.c_str(), header_of(slab),
                                    static_cast<int>(index)));
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
                                      item, zone.uz_name.c_str()));
  const std::size_t index = index_of(*slab, item);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((word_of(*slab, index).fetch_or(bit) & bit) != 0)
    bad_item(zone, "Duplicate alloc", item, *slab, index);
}

void uma_dbg_free(uma_zone& zone, void* item) {
  uma_slab* slab = slab_of(zone, item);
  if (slab == nullptr || slab->us_keg != zone.uz_keg)
    zone.vm->cpus.panic(kernel_format(zone.vm->addresses,
                                      "uma: Freed item %p did not belong to zone %s", item,
                                      zone.uz_name.c_str()));
  const std::size_t index = index_of(*slab, item);
  const uma_keg& keg = *slab->us_keg;
  if (index >= keg.uk_ipers) bad_item(zone, "Invalid free", item, *slab, index);
  if (slab->us_data + index * keg.uk_rsize != item)
    bad_item(zone, "Unaligned free", item, *slab, index);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((word_of(*slab, index).fetch_and(~bit) & bit) == 0)
    bad_item(zone, "Duplicate free", item, *slab, index);
}

}  // namespace dtmalloc
