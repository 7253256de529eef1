// SPDX-License-Identifier: BSD-2-Clause
// Where zones, kegs and their texts lie for D programs, and the lists that these can walk.
//
// Counterpart:  sys/vm/uma_core.c (uma_kegs, uma_cachezones; keg_ctor, zone_ctor, zone_dtor)
// Locking:      zones_mutex for the lists, ShownZones::mutex for places and texts
#include <algorithm>
#include <cstring>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kRegion = std::uint64_t{128} << 20;
constexpr std::uint64_t kKegs = AddressMap::kZones + kRegion;
constexpr std::uint64_t kTexts = kKegs + kRegion;
constexpr std::uint64_t kTextsEnd = kTexts + kRegion / 2;
constexpr std::uint64_t kZoneStride = 256;
constexpr std::uint64_t kKegStride = 512;
static_assert(sizeof(ZoneWords) <= kZoneStride);
static_assert(sizeof(KegWords) + kMaxDomains * sizeof(DomainWords) <= kKegStride);

const std::byte* bytes(const void* host) { return static_cast<const std::byte*>(host); }

template <typename T, typename Words>
void insert_head(ListHead<T>& head, T& element, ListEntry<T> Words::*link) {
  T* const next = head.lh_first;
  (element.*link).le_next = next;
  (element.*link).le_prev = &head.lh_first;
  if (next != nullptr) (next->*link).le_prev = &(element.*link).le_next;
  head.lh_first = &element;
}

template <typename T, typename Words>
void insert_after(T& before, T& element, ListEntry<T> Words::*link) {
  T* const next = (before.*link).le_next;
  (element.*link).le_next = next;
  (element.*link).le_prev = &(before.*link).le_next;
  if (next != nullptr) (next->*link).le_prev = &(element.*link).le_next;
  (before.*link).le_next = &element;
}

template <typename T, typename Words>
void remove(T& element, ListEntry<T> Words::*link) {
  ListEntry<T>& from = element.*link;
  if (from.le_next != nullptr) (from.le_next->*link).le_prev = from.le_prev;
  *from.le_prev = from.le_next;
}

std::uint64_t take_place(Vm& vm, ShownZones::Places& places, std::uint64_t base,
                         std::uint64_t stride) {
  const std::lock_guard lock(vm.shown.mutex);
  if (!places.free.empty()) {
    const std::uint64_t place = places.free.back();
    places.free.pop_back();
    return place;
  }
  const std::uint64_t offset = places.made * stride;
  if (offset >= kRegion) vm.cpus.panic("not modelled: so many zones");
  ++places.made;
  return base + offset;
}

void give_place(Vm& vm, ShownZones::Places& places, const void* host) {
  const std::uint64_t place = vm.addresses.to_simulated(host);
  const std::lock_guard lock(vm.shown.mutex);
  places.free.push_back(place);
}

}  // namespace

const char* uma_text(Vm& vm, const char* text) {
  if (text == nullptr) return nullptr;
  ShownZones& shown = vm.shown;
  const std::lock_guard lock(shown.mutex);
  if (const auto known = shown.texts.find(std::string_view(text)); known != shown.texts.end())
    return known->second;
  const std::size_t size = std::strlen(text) + 1;
  if (shown.block_size - shown.block_used < size) {
    const std::size_t pages = (size + kPageBytes - 1) / kPageBytes;
    shown.block_size = pages * kPageBytes;
    shown.block_used = 0;
    shown.blocks.push_back(std::make_unique<char[]>(shown.block_size));
    // Beyond the end a text has no address that a program could read it at.
    if (const std::uint64_t at = kTexts + shown.text_pages * kPageBytes;
        at + shown.block_size <= kTextsEnd)
      vm.addresses.add({at, bytes(shown.blocks.back().get()), shown.block_size, true});
    shown.text_pages += pages;
  }
  char* const copy = shown.blocks.back().get() + shown.block_used;
  shown.block_used += size;
  std::memcpy(copy, text, size);
  shown.texts.emplace(text, copy);
  return copy;
}

void keg_show(uma_keg& keg) {
  Vm& vm = *keg.vm;
  const std::uint64_t place = take_place(vm, vm.shown.kegs, kKegs, kKegStride);
  vm.addresses.add({place, bytes(static_cast<KegWords*>(&keg)), sizeof(KegWords), true});
  for (std::size_t d = 0; d < keg.domains(); ++d)
    vm.addresses.add({place + sizeof(KegWords) + d * sizeof(DomainWords),
                      bytes(static_cast<DomainWords*>(&keg.uk_domain[d])), sizeof(DomainWords),
                      true});
  insert_head(vm.shown.uma_kegs, keg, &uma_keg::uk_link);
}

void keg_hide(uma_keg& keg) {
  Vm& vm = *keg.vm;
  give_place(vm, vm.shown.kegs, &keg);
  vm.addresses.remove(&keg);
  for (std::size_t d = 0; d < keg.domains(); ++d)
    vm.addresses.remove(static_cast<DomainWords*>(&keg.uk_domain[d]));
}

void zone_show(uma_zone& zone) {
  Vm& vm = *zone.vm;
  const std::uint64_t place = take_place(vm, vm.shown.zones, AddressMap::kZones, kZoneStride);
  vm.addresses.add({place, bytes(static_cast<ZoneWords*>(&zone)), sizeof(ZoneWords), true});
  if (zone.uz_keg == nullptr) return insert_head(vm.shown.uma_cachezones, zone, &uma_zone::uz_link);
  uma_zone* last = zone.uz_keg->uk_zones.lh_first;
  if (last == nullptr) return insert_head(zone.uz_keg->uk_zones, zone, &uma_zone::uz_link);
  while (last->uz_link.le_next != nullptr) last = last->uz_link.le_next;
  insert_after(*last, zone, &uma_zone::uz_link);
}

void zone_unlist(uma_zone& zone) {
  remove(zone, &uma_zone::uz_link);
  uma_keg* const keg = zone.uz_keg;
  if (keg != nullptr && keg->zone == &zone) remove(*keg, &uma_keg::uk_link);
}

void zone_hide(uma_zone& zone) {
  Vm& vm = *zone.vm;
  give_place(vm, vm.shown.zones, &zone);
  vm.addresses.remove(&zone);
}

}  // namespace dtmalloc
