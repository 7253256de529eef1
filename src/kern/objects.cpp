// SPDX-License-Identifier: BSD-2-Clause
// The kernel's global variables, described for D programs.
// Counterpart:  sys/kern/kern_malloc.c, sys/kern/subr_smp.c
// Locking:      see objects.hpp
#include "kern/objects.hpp"

#include <cstring>

namespace dtmalloc {
namespace {

constexpr std::uint64_t kObjects = 0xffffffff80e00000;  // below AddressMap::kData

}  // namespace

void KernelObjects::add(std::string name, std::string type, const void* host, std::size_t size) {
  addresses_.add({next_, static_cast<const std::byte*>(host), size, true});
  list_.push_back({std::move(name), std::move(type), next_, size});
  next_ += (size + 63) / 64 * 64;
}

KernelObjects::KernelObjects(Kernel::Impl& kernel)
    : addresses_(kernel.addresses),
      next_(kObjects),
      mp_ncpus_(kernel.config.cpus),
      mp_maxid_(static_cast<unsigned>(kernel.config.cpus - 1)) {
  add("kmemstatistics", "struct malloc_type *", &kernel.kmemstatistics,
      sizeof kernel.kmemstatistics);
  // Little-endian: the low half of our wider count.
  add("kmemcount", "int", &kernel.kmemcount, sizeof(int));
  add("kmemsize", "uint8_t [" + std::to_string(kernel.kmemsize.size()) + "]",
      kernel.kmemsize.data(), kernel.kmemsize.size());
  add("vm_kmem_size", "unsigned long", &kernel.kmem.size, sizeof kernel.kmem.size);
  add("vm_kmem_size_min", "unsigned long", &kernel.kmem.min, sizeof kernel.kmem.min);
  add("vm_kmem_size_max", "unsigned long", &kernel.kmem.max, sizeof kernel.kmem.max);
  add("vm_kmem_size_scale", "unsigned int", &kernel.kmem.scale, sizeof kernel.kmem.scale);
  add("mp_ncpus", "int", &mp_ncpus_, sizeof mp_ncpus_);
  add("mp_maxid", "unsigned int", &mp_maxid_, sizeof mp_maxid_);
  add("hz", "int", &hz_, sizeof hz_);

  // { int kz_size; const char *kz_name; uma_zone_t kz_zone[MALLOC_DEBUG_MAXZONES]; }, with an
  // element of zeros at its end; the names lie behind the table.
  const std::size_t classes = kernel.classes.size();
  kmemzone_size_ = kZonesOffset + kernel.numzones * sizeof(void*);
  std::string names;
  std::vector<std::size_t> at;
  for (const std::uint32_t size : kernel.classes) {
    at.push_back(names.size());
    names += (kernel.release.zone_prefix ? "malloc-" : "") + std::to_string(size) + '\0';
  }
  const std::size_t table = (classes + 1) * kmemzone_size_;
  kmemzones_.resize(table + names.size());
  std::memcpy(kmemzones_.data() + table, names.data(), names.size());
  for (std::size_t i = 0; i < classes; ++i) {
    std::byte* const row = kmemzones_.data() + i * kmemzone_size_;
    const auto size = static_cast<int>(kernel.classes[i]);
    const std::byte* const name = kmemzones_.data() + table + at[i];
    std::memcpy(row, &size, sizeof size);
    std::memcpy(row + 8, &name, sizeof name);
    for (std::size_t zone = 0; zone < kernel.numzones; ++zone)
      std::memcpy(row + kZonesOffset + zone * sizeof(void*), &kernel.zones[zone * classes + i],
                  sizeof(void*));
  }
  add("kmemzones", "struct kmemzone [" + std::to_string(classes + 1) + "]", kmemzones_.data(),
      kmemzones_.size());
  list_.back().size = table;

  add("uma_kegs", "struct uma_keg_list", &kernel.vm->shown.uma_kegs,
      sizeof kernel.vm->shown.uma_kegs);
  add("uma_cachezones", "struct uma_zone_list", &kernel.vm->shown.uma_cachezones,
      sizeof kernel.vm->shown.uma_cachezones);
  add("uma_kmem_total", "unsigned long", &kernel.vm->uma_kmem_total, sizeof(unsigned long));
  add("uma_kmem_limit", "unsigned long", &kernel.vm->uma_kmem_limit, sizeof(unsigned long));
}

}  // namespace dtmalloc
