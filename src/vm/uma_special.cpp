// SPDX-License-Identifier: BSD-2-Clause
// Zones that are not plain: secondary, cache-only and per-CPU ones; where a zone's items come from
// and go to; reserves and what is made beforehand.
//
// Counterpart:  sys/vm/uma_core.c (uma_zsecond_create, uma_zcache_create, uma_zalloc_pcpu_arg,
//               uma_prealloc), sys/kern/subr_pcpu.c
// Locking:      as uma_core.cpp
// Differs:      the address of a per-CPU item is CPU 0's copy: nothing is encoded in it. There are
//               copies for the CPUs that the machine boots with
#include <cstring>

#include "smp/functions.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {

std::vector<uma_zone*> uma_zones(Vm& vm) { return zone_list(vm); }
const char* uma_zone_name(const uma_zone* zone) { return zone->uz_name; }

// --- items in and out

int zone_fetch(uma_zone& zone, void** items, int max, int domain, int flags) {
  const int count = zone.uz_import != nullptr
                        ? zone.uz_import(zone.uz_arg, items, max, domain, flags)
                        : zone_import(zone, items, max, domain, flags);
  if (zone.uz_init == nullptr) return count;
  for (int i = 0; i < count; ++i)
    if (zone.uz_init(items[i], static_cast<int>(zone.uz_size), flags) != 0) {
      if (zone.uz_release != nullptr)
        zone.uz_release(zone.uz_arg, items + i, count - i);
      else
        zone_release(zone, items + i, count - i);
      return i;
    }
  return count;
}

void zone_give_back(uma_zone& zone, void** items, int count) {
  if (zone.uz_fini != nullptr)
    for (int i = 0; i < count; ++i) zone.uz_fini(items[i], static_cast<int>(zone.uz_size));
  if (zone.uz_release != nullptr)
    zone.uz_release(zone.uz_arg, items, count);
  else
    zone_release(zone, items, count);
  if (zone.limited()) zone_free_limit(zone, count);
}

// --- secondary and cache-only zones

uma_zone* uma_zsecond_create(const char* name, uma_ctor ctor, uma_dtor dtor, uma_init zinit,
                             uma_fini zfini, uma_zone* primary) {
  name = uma_text(*primary->vm, name);
  return in_function(
      KernelFunction::uma_zsecond_create,
      [&]() -> uma_zone* {
        Vm& vm = *primary->vm;
        uma_keg* keg = primary->uz_keg;
        if (keg == nullptr || (primary->uz_flags & UMA_ZONE_SECONDARY) != 0)
          vm.cpus.panic("not modelled: a secondary zone of a zone without a keg of its own");
        uma_zone& zone = zone_make(vm, name, keg->uk_size, keg->uk_flags | UMA_ZONE_SECONDARY, keg);
        zone.uz_ctor = ctor;
        zone.uz_dtor = dtor;
        if (ctor != nullptr || dtor != nullptr) zone.uz_flags |= UMA_ZFLAG_CTORDTOR;
        if ((primary->uz_flags & UMA_ZFLAG_TRASH) != 0)
          zone.uz_flags |= UMA_ZFLAG_TRASH | UMA_ZFLAG_CTORDTOR;
        zone.uz_init = zinit;
        zone.uz_fini = zfini;
        return &zone;
      },
      name, ctor, dtor, zinit, zfini, primary);
}

uma_zone* uma_zcache_create(Vm& vm, const char* name, std::size_t size, uma_ctor ctor,
                            uma_dtor dtor, uma_init zinit, uma_fini zfini, uma_import import,
                            uma_release release, void* arg, std::uint32_t flags) {
  name = uma_text(vm, name);
  return in_function(
      KernelFunction::uma_zcache_create,
      [&]() -> uma_zone* {
        DTM_CHECK(import != nullptr && release != nullptr, "uma_zcache_create: import and release");
        check_zone_flags(vm, flags);
        check_zone_size(vm, name, size);
        uma_zone& zone = zone_make(vm, name, size, flags | UMA_ZFLAG_CACHE, nullptr);
        zone.uz_ctor = ctor;
        zone.uz_dtor = dtor;
        if (ctor != nullptr || dtor != nullptr) zone.uz_flags |= UMA_ZFLAG_CTORDTOR;
        zone.uz_init = zinit;
        zone.uz_fini = zfini;
        zone.uz_import = import;
        zone.uz_release = release;
        zone.uz_arg = arg;
        return &zone;
      },
      name, size, ctor, dtor, zinit, zfini, import, release, arg, flags);
}

// --- reserves

void uma_zone_reserve(uma_zone* zone, int items) {
  in_function(
      KernelFunction::uma_zone_reserve,
      [&] {
        if (zone->uz_keg == nullptr) return;
        zone->uz_keg->uk_reserve = static_cast<std::uint32_t>(items);
      },
      zone, items);
}

void uma_prealloc(uma_zone* zone, int items) {
  zone->vm->cpus.bind_any();
  in_function(
      KernelFunction::uma_prealloc,
      [&] {
        uma_keg* keg = zone->uz_keg;
        if (keg == nullptr) return;
        zone->vm->cpus.bind_any();
        for (int made = 0; made < items; made += keg->uk_ipers) keg_prealloc_slab(*keg);
      },
      zone, items);
}

std::size_t uma_zone_memory(uma_zone* zone) {
  std::size_t sum = 0;
  for (std::size_t d = 0; d < zone->domains(); ++d) {
    if (zone->uz_keg == nullptr) {
      const std::lock_guard lock(zone->uz_domain[d].uzd_lock);
      sum += static_cast<std::size_t>(zone->uz_domain[d].uzd_nitems) * zone->uz_size;
    } else {
      const std::lock_guard lock(zone->uz_keg->uk_domain[d].ud_lock);
      sum += zone->uz_keg->uk_domain[d].ud_pages * kPageBytes;
    }
  }
  return sum;
}

// --- per-CPU items

// UNVERIFIED names.
void pcpu_zones_startup(Vm& vm) {
  constexpr std::array<std::size_t, 5> kSizes{4, 8, 16, 32, 64};
  for (std::size_t i = 0; i < kSizes.size(); ++i)
    vm.pcpu_zones[i] =
        uma_zcreate(vm, ("pcpu-" + std::to_string(kSizes[i])).c_str(), kSizes[i], nullptr, nullptr,
                    nullptr, nullptr, UMA_ALIGN_PTR, UMA_ZONE_PCPU);
}

uma_zone* pcpu_zone(Vm& vm, std::size_t size) {
  for (uma_zone* zone : vm.pcpu_zones)
    if (zone != nullptr && zone->uz_size == size) return zone;
  return nullptr;
}

void* uma_zalloc_pcpu_arg(uma_zone* zone, void* arg, int flags) {
  zone->vm->cpus.bind_any();
  return in_function(
      KernelFunction::uma_zalloc_pcpu_arg,
      [&]() -> void* {
        DTM_CHECK((zone->uz_flags & UMA_ZONE_PCPU) != 0,
                  "uma_zalloc_pcpu: a zone without UMA_ZONE_PCPU");
        void* item = uma_zalloc_arg(zone, arg, flags & ~m::ZERO);
        if (item != nullptr && (flags & m::ZERO) != 0)
          for (int cpu = 0; cpu < zone->uz_keg->uk_ppera; ++cpu)
            std::memset(zpcpu_get_cpu(item, cpu), 0, zone->uz_size);
        return item;
      },
      zone, arg, flags);
}

void uma_zfree_pcpu_arg(uma_zone* zone, void* item, void* arg) {
  zone->vm->cpus.bind_any();
  in_function(
      KernelFunction::uma_zfree_pcpu_arg,
      [&] {
        DTM_CHECK((zone->uz_flags & UMA_ZONE_PCPU) != 0,
                  "uma_zfree_pcpu: a zone without UMA_ZONE_PCPU");
        uma_zfree_arg(zone, item, arg);
      },
      zone, item, arg);
}

}  // namespace dtmalloc
