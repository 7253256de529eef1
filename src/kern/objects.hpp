// SPDX-License-Identifier: BSD-2-Clause
// The kernel's global variables that D programs may name, at their simulated addresses.
//
// Counterpart:  the data of kern_malloc.c, subr_smp.c, kern_clock.c, as CTF describes it
// Locking:      made at boot, read only afterwards; what the variables hold is as racy as in a
// kernel
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kern/kernel_impl.hpp"

namespace dtmalloc {

struct KernelObject {
  std::string name;
  std::string type;  // as in C: "struct malloc_type *"
  std::uint64_t address = 0, size = 0;
};

class KernelObjects {
 public:
  explicit KernelObjects(Kernel::Impl& kernel);
  const std::vector<KernelObject>& list() const { return list_; }
  // Bytes of an element of kmemzones[], and where its zones begin.
  static constexpr std::size_t kZonesOffset = 16;
  std::size_t kmemzone_size() const { return kmemzone_size_; }

 private:
  void add(std::string name, std::string type, const void* host, std::size_t size);

  AddressMap& addresses_;
  std::vector<KernelObject> list_;
  std::uint64_t next_;
  int mp_ncpus_, hz_ = 1000;
  unsigned mp_maxid_;
  std::size_t kmemzone_size_ = 0;
  std::vector<std::byte> kmemzones_;
};

}  // namespace dtmalloc
