// SPDX-License-Identifier: BSD-2-Clause
// A user's program with the allocator alone.

#include <dtmalloc/kern/malloc.hpp>
#include <dtmalloc/kernel.hpp>

int main() {
  dtmalloc::Kernel kernel{dtmalloc::KernelConfig{}};
  malloc_type& type = kernel.define_type("M_USER", "user");
  void* block = kernel.malloc(100, &type, dtmalloc::M_WAITOK);
  if (block == nullptr) return 1;
  kernel.free(block, &type);
  return 0;
}
