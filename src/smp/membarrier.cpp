// SPDX-License-Identifier: BSD-2-Clause
// membarrier(2), or, where it is missing, the interrupts that a change of page protection sends.
#include "smp/membarrier.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <dtmalloc/sys/error.hpp>
#include <mutex>

namespace dtmalloc {
namespace {

std::atomic<bool> forced_fallback{false};

bool have_membarrier() {
  static const bool registered = [] {
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands >= 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  }();
  return registered;
}

// Taking away a right to a page that is in use makes the host interrupt every CPU that runs this
// process, and an interrupt is a barrier.
void flip_page() {
  static std::mutex mutex;
  static void* page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  DTM_CHECK(page != MAP_FAILED, "no page for the memory barrier");
  const std::lock_guard lock(mutex);
  DTM_CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0, "mprotect");
  static_cast<volatile char*>(page)[0] = 1;
  DTM_CHECK(mprotect(page, 4096, PROT_READ) == 0, "mprotect");
}

}  // namespace

void heavy_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!forced_fallback.load(std::memory_order_relaxed) && have_membarrier() &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  flip_page();
}

void heavy_barrier_without_membarrier(bool fallback) {
  forced_fallback.store(fallback, std::memory_order_relaxed);
}

}  // namespace dtmalloc
