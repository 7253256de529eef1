// SPDX-License-Identifier: BSD-2-Clause
// Zones: making and destroying them; the zones that UMA itself needs.
//
// Counterpart:  sys/vm/uma_core.c (zone_ctor, keg_ctor, uma_startup1)
// Locking:      zones_mutex for the lists and for new per-CPU caches
// Differs:      zones and kegs are host objects, so "UMA Kegs" and "UMA Zones" do not exist, nor
// does
//               "UMA Hash", as the page map finds every slab. DEVIATES: malloc_init() takes no item
//               of pcpu-64: statistics lie in the CPUs, so that a hit touches one line
#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "smp/functions.hpp"
#include "sys/format.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint32_t kInherited =
    UMA_ZONE_NOTOUCH | UMA_ZONE_MALLOC | UMA_ZONE_NOFREE | UMA_ZONE_VM | UMA_ZONE_NOTPAGE |
    UMA_ZONE_PCPU | UMA_ZONE_FIRSTTOUCH | UMA_ZONE_ROUNDROBIN | UMA_ZONE_NOKASAN |
    UMA_ZFLAG_OFFPAGE | UMA_ZFLAG_HASH | UMA_ZFLAG_VTOSLAB | UMA_ZFLAG_BUCKET | UMA_ZFLAG_INTERNAL;
struct Refused {
  std::uint32_t flag;
  const char* text;
};
constexpr Refused kNotModelled[] = {
    {UMA_ZONE_NOTPAGE, "UMA_ZONE_NOTPAGE: memory that the machine's pages are not"},
    {UMA_ZONE_CACHESPREAD, "UMA_ZONE_CACHESPREAD: items that lie across pages"},
    {UMA_ZONE_SMR, "UMA_ZONE_SMR: readers that hold no reference"},
    {UMA_ZONE_SECONDARY, "UMA_ZONE_SECONDARY here: uma_zsecond_create() makes such a zone"},
    {UMA_ZFLAG_CACHE, "UMA_ZFLAG_CACHE here: uma_zcache_create() makes such a zone"},
};

// "malloc-16" -> "malloc_16"; `older`: zones of that name.
std::string ctlname(std::string name, std::int32_t older) {
  for (char& c : name)
    if (std::strchr("./\\ -", c) != nullptr) c = '_';
  return older == 0 ? name : name + "_" + std::to_string(older);
}

}  // namespace

uma_zone& zone_make(Vm& vm, const std::string& name, std::size_t size, std::uint32_t flags,
                    uma_keg* keg) {
  auto zone = std::make_unique<uma_zone>();
  zone->vm = &vm;
  zone->uz_name = uma_text(vm, name.c_str());
  zone->uz_domain =
      std::make_unique<uma_zone_domain[]>(static_cast<std::size_t>(vm.config.domains));
  zone->uz_size = static_cast<std::uint32_t>(size);
  zone->uz_flags = keg == nullptr ? flags : (flags & ~kInherited) | (keg->uk_flags & kInherited);
  zone->uz_keg = keg;
  zone->uz_cpu = std::make_unique<std::atomic<uma_cache*>[]>(MAXCPU);
  if ((flags & (UMA_ZFLAG_INTERNAL | UMA_ZONE_NOBUCKET)) == 0) {
    const std::uint16_t entries = (flags & UMA_ZONE_MAXBUCKET) != 0
                                      ? static_cast<std::uint16_t>(BUCKET_MAX)
                                      : bucket_select(size);
    zone->uz_bucket_size = entries;
    zone->uz_bucket_size_min = entries;
    zone->uz_bucket_size_max = BUCKET_MAX;
  }
  uma_zone& out = *zone;
  uma_timer_sync(vm);  // the time before it is not its own
  const std::lock_guard lock(vm.zones_mutex);
  // One more than the largest of the same name, as such zones may go in any order.
  for (const auto& other : vm.zones)
    if (other->listed && name == other->uz_name)
      out.uz_namecnt = std::max(out.uz_namecnt, other->uz_namecnt + 1);
  out.uz_ctlname = uma_text(vm, ctlname(name, out.uz_namecnt).c_str());
  zone_show(out);
  vm.zones.push_back(std::move(zone));
  return out;
}

uma_zone* zone_create(Vm& vm, const std::string& name, std::size_t size, int align,
                      std::uint32_t flags, std::uint8_t page_zone) {
  auto made = std::make_unique<uma_keg>();
  uma_keg* keg = made.get();
  const KegLayout layout = keg_layout(size, align, vm.config.invariants, flags,
                                      std::max(1, vm.config.cpus), vm.multipage_slabs);
  if (layout.ipers == 0)
    vm.cpus.panic("not modelled: zone " + name + " has no place for slab headers");
  if (layout.ppera > std::numeric_limits<std::uint16_t>::max())
    vm.cpus.panic("not modelled: a slab of zone " + name + " has more than 65535 pages");
  keg->vm = &vm;
  keg->uk_name = uma_text(vm, name.c_str());
  keg->uk_domain = std::make_unique<uma_domain[]>(static_cast<std::size_t>(vm.config.domains));
  keg->uk_align = static_cast<std::uint32_t>(align);
  keg->uk_size = static_cast<std::uint32_t>(size);
  keg->uk_rsize = layout.rsize;
  keg->uk_ppera = static_cast<std::uint16_t>(layout.ppera);
  keg->uk_ipers = static_cast<std::uint16_t>(layout.ipers);
  keg->uk_pgoff = layout.pgoff;
  keg->efficiency = layout.efficiency;
  keg->page_zone = page_zone;
  keg->uk_flags = flags;
  if ((flags & (UMA_ZONE_ROUNDROBIN | UMA_ZFLAG_CACHE | UMA_ZONE_NOTPAGE)) == 0)
    keg->uk_flags |= UMA_ZONE_FIRSTTOUCH;
  // A header that is not where the item's address says needs the map from page to slab.
  if (layout.offpage) keg->uk_flags |= UMA_ZFLAG_OFFPAGE;
  if (layout.vtoslab) keg->uk_flags |= UMA_ZFLAG_VTOSLAB;
  if ((flags & UMA_ZONE_MALLOC) != 0) keg->uk_flags |= UMA_ZFLAG_VTOSLAB;
  {
    const std::lock_guard lock(vm.zones_mutex);
    keg_show(*keg);
    vm.kegs.push_back(std::move(made));
  }
  uma_zone& zone = zone_make(vm, name, size, flags, keg);
  keg->zone = &zone;
  return &zone;
}

uma_cache& zone_new_cache(uma_zone& zone, int cpu) {
  const std::lock_guard lock(zone.vm->zones_mutex);
  zone.own_caches.push_back(std::make_unique<uma_cache>());
  uma_cache* cache = zone.own_caches.back().get();
  cache->uz_size = zone.uz_size;
  zone.uz_cpu[static_cast<std::size_t>(cpu)].store(cache, std::memory_order_release);
  return *cache;
}

void zone_attach_cache(uma_zone& zone, int cpu, uma_cache* cache) {
  zone.uz_cpu[static_cast<std::size_t>(cpu)].store(cache, std::memory_order_release);
}

void uma_startup(Vm& vm) {
  uma_sysctl_init(vm);
  const bool inv = vm.config.invariants;
  vm.slab_zones[0] = zone_create(vm, "UMA Slabs 0", offpage_header_size(1, inv), UMA_ALIGN_PTR,
                                 UMA_ZFLAG_INTERNAL, 0);
  vm.slab_zones[1] = zone_create(vm, "UMA Slabs 1", offpage_header_size(SLAB_MAX_SETSIZE, inv),
                                 UMA_ALIGN_PTR, UMA_ZFLAG_INTERNAL, 0);
  bucket_init(vm);
  if (inv) {
    for (uma_zone* zone : vm.slab_zones) trash_attach(*zone);
    for (uma_zone* zone : vm.bucket_zones) trash_attach(*zone);
  }
  pcpu_zones_startup(vm);
}

void check_zone_flags(Vm& vm, std::uint32_t flags) {
  constexpr std::uint32_t kNoSize = UMA_ZONE_MAXBUCKET | UMA_ZONE_NOBUCKET;
  if (vm.config.invariants && (flags & kNoSize) == kNoSize)
    vm.cpus.panic("Invalid zone flag combination");
  for (const Refused& refused : kNotModelled)
    if ((flags & refused.flag) != 0) vm.cpus.panic(std::string("not modelled: ") + refused.text);
}

void check_zone_size(Vm& vm, const char* name, std::size_t size) {
  if (size == 0 || size > std::numeric_limits<std::int32_t>::max())
    vm.cpus.panic(std::string("not modelled: zone ") + name + " has items of " +
                  std::to_string(size) + " bytes");
}

// DEVIATES: without INVARIANTS too: what a kernel does then is nothing that one could rely on.
static void check_layout(Vm& vm, const char* name, std::size_t size, int align,
                         std::uint32_t flags) {
  check_zone_size(vm, name, size);
  if (align < 0 || (align & (std::int64_t{align} + 1)) != 0)
    vm.cpus.panic(kernel_format(vm.addresses, "invalid zone alignment %d for \"%s\"", align, name));
  const std::uint64_t rsize =
      (size + static_cast<std::uint64_t>(align)) & ~static_cast<std::uint64_t>(align);
  if ((flags & UMA_ZONE_PCPU) != 0 && rsize > kPageBytes)
    vm.cpus.panic(kernel_format(vm.addresses,
                                "keg_layout: cannot configure for PCPU: keg=%s, size=%u, flags=%s",
                                name, static_cast<unsigned>(size), flags_text(flags).c_str()));
}

uma_zone* uma_zcreate(Vm& vm, const char* name, std::size_t size, uma_ctor ctor, uma_dtor dtor,
                      uma_init uminit, uma_fini fini, int align, std::uint32_t flags) {
  name = uma_text(vm, name);
  return in_function(
      KernelFunction::uma_zcreate,
      [&]() -> uma_zone* {
        check_zone_flags(vm, flags);
        check_layout(vm, name, size, align, flags);
        uma_zone* zone = zone_create(vm, name, size, align, flags, 0);
        zone->uz_ctor = ctor;
        zone->uz_dtor = dtor;
        if (ctor != nullptr || dtor != nullptr) zone->uz_flags |= UMA_ZFLAG_CTORDTOR;
        zone->uz_keg->uk_init = uminit;
        zone->uz_keg->uk_fini = fini;
        if ((flags & UMA_ZONE_ZINIT) != 0 && uminit == nullptr)
          zone->uz_keg->uk_init = [](void* mem, int bytes, int) {
            std::memset(mem, 0, static_cast<std::size_t>(bytes));
            return 0;
          };
        // Memory that nobody may rely on while it is free can be filled with junk.
        constexpr std::uint32_t kKept = UMA_ZONE_ZINIT | UMA_ZONE_NOTOUCH | UMA_ZONE_NOFREE;
        if (vm.config.invariants && (flags & kKept) == 0 && uminit == nullptr && fini == nullptr)
          trash_attach(*zone);
        return zone;
      },
      name, size, ctor, dtor, uminit, fini, align, flags);
}

// The caches are emptied into the slabs and the slabs given back.
static void zdestroy(uma_zone* zone) {
  Vm& vm = *zone->vm;
  if (zdestroy_after_action(*zone)) return;
  // Who was woken and has not run yet counts as well.
  if (zone->uz_users.load() != 0)
    vm.cpus.panic("not modelled: zone " + std::string(zone->uz_name) +
                  " is destroyed while somebody waits for it");
  for (uma_zone* other : zone_list(vm))
    if (other != zone && other->uz_keg != nullptr && other->uz_keg->zone == zone)
      vm.cpus.panic("not modelled: zone " + std::string(zone->uz_name) +
                    " is destroyed before its secondary " + other->uz_name);
  while (true) {
    {
      const std::lock_guard lock(vm.zones_mutex);
      if (std::exchange(zone->listed, false)) zone_unlist(*zone);
      if (zone->uz_reclaimers == 0) break;
    }
    std::this_thread::yield();
  }
  for (int id = 0; id < vm.cpus.count(); ++id) {
    uma_cache* cache = zone->cache_or_null(id);
    if (cache == nullptr) continue;
    std::array<uma_bucket*, 3> taken{};
    vm.cpus.run_on_cpu(vm.cpus.cpu(id), [&] { taken = cache->unload(); });
    for (uma_bucket* bucket : taken)
      if (bucket != nullptr)
        zone_free_bucket(*zone, bucket, nullptr, false, bucket == taken.back());
  }
  uma_keg* keg = zone->uz_keg;
  const bool primary = keg != nullptr && (zone->uz_flags & UMA_ZONE_SECONDARY) == 0;
  if (primary) keg->uk_reserve = 0;
  zone_reclaim(*zone, UMA_ANYDOMAIN, Reclaim::drain);
  if (primary) {
    std::uint64_t pages = 0, free_items = 0;
    for (std::size_t d = 0; d < keg->domains(); ++d) {
      pages += keg->uk_domain[d].ud_pages;
      free_items += keg->uk_domain[d].ud_free_items;
    }
    if (pages != 0) {
      const std::uint64_t lost = pages / keg->uk_ppera * keg->uk_ipers - free_items;
      vm.cpus.console(kernel_format(
          vm.addresses, "Freed UMA keg (%s) was not empty (%u items).  Lost %u pages of memory.\n",
          keg->uk_name, static_cast<unsigned>(lost), static_cast<unsigned>(pages)));
      // Its slabs stay in the page map: the keg and the zone live on with the machine, unlisted.
      return;
    }
  }
  const std::lock_guard lock(vm.zones_mutex);
  zone_hide(*zone);
  if (primary) keg_hide(*keg);
  std::erase_if(vm.zones, [&](const auto& known) { return known.get() == zone; });
  if (primary) std::erase_if(vm.kegs, [&](const auto& known) { return known.get() == keg; });
}

void uma_zdestroy(uma_zone* zone) {
  zone->vm->cpus.bind_any();
  in_function(
      KernelFunction::uma_zdestroy, [&] { zdestroy(zone); }, zone);
}

}  // namespace dtmalloc
