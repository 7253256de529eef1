// SPDX-License-Identifier: BSD-2-Clause
// What the debugging options of a kernel do at the door of malloc(9): assertions on versions,
// flags and contexts, injected failures, memguard's and redzone's choices.
//
// Counterpart:  sys/kern/kern_malloc.c (malloc_dbg, free_dbg, under MALLOC_DEBUG)
// Locking:      none; counters are atomic
#include <cstring>

#include "kern/kernel_impl.hpp"
#include "kern/ledger_impl.hpp"
#include "kern/redzone.hpp"
#include "vm/memguard.hpp"

namespace dtmalloc {
namespace {

void check_wait_flags(Kernel::Impl& k, int flags) {
  const int wait = flags & (kM_WAITOK | kM_NOWAIT);
  if (wait == kM_WAITOK || wait == kM_NOWAIT) return;
  if (k.release.wait_flags_asserted) {
    if (wait == 0) k.panic("malloc: flags must include either M_WAITOK or M_NOWAIT");
    k.panic("malloc: flags may not include both M_WAITOK and M_NOWAIT");
  }
  if (k.wait_flags_printed.exchange(true)) return;
  // That the two wait bits alone are printed: UNVERIFIED.
  std::string text =
      kernel_format(k.addresses, "Bad malloc flags: %x\n", static_cast<unsigned>(wait));
  const std::vector<std::string>& sites = k.cpus->current_thread().call_sites;
  for (auto site = sites.rbegin(); site != sites.rend(); ++site) text += "  at " + *site + "\n";
  k.cpus->console(text);
}

void check_context(Kernel::Impl& k, int flags) {
  if ((flags & kM_WAITOK) != 0) {
    const SimThread& thread = k.cpus->current_thread();
    if (thread.intr_nesting > 0) k.panic("malloc(M_WAITOK) in interrupt context");
    if (thread.no_sleeping > 0) k.panic("malloc(M_WAITOK) with sleeping prohibited");
  }
  if (curcpu->critbase != 0) k.panic("malloc: called with spinlock or critical section held");
}

// MALLOC_MAKE_FAILURES: whether this call is to fail. A negative rate fails as many: a remainder is
// 0 under either sign. The counter is wider than a kernel's, which wraps around into negative
// numbers.
bool inject_failure(Kernel::Impl& k, int flags) {
  MakeFailures& failures = k.make_failures;
  const int rate = failures.failure_rate.load(std::memory_order_relaxed);
  if ((flags & kM_NOWAIT) == 0 || rate == 0) return false;
  const std::int64_t count = failures.nowait_count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count % rate != 0) return false;
  failures.failure_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

void check_version(Kernel::Impl& k, const malloc_type* mtp, const char* function) {
  if (k.invariants() && mtp->ks_version != M_VERSION)
    k.panic("%s: bad malloc type version", function);
}

void check_type(Kernel::Impl& k, const malloc_type* mtp, const char* function) {
  if (!k.knows(mtp)) {
    if (k.ledger != nullptr) k.ledger->impl().stale(mtp);
    if (mtp->ks_mti.mti_stats != nullptr)
      k.panic("%s: type %s belongs to another kernel", function, mtp->ks_shortdesc);
    k.panic("%s: type %s is not registered", function, mtp->ks_shortdesc);
  }
}

bool malloc_dbg(Kernel::Impl& k, void** addr, std::size_t* size, malloc_type* mtp, int flags) {
  check_version(k, mtp, "malloc");
  check_type(k, mtp, "malloc");
  if (k.invariants()) {
    check_wait_flags(k, flags);
    if ((flags & kM_NEVERFREED) != 0) k.panic("malloc: M_NEVERFREED is for internal use only");
  }
  if (inject_failure(k, flags)) {
    *addr = nullptr;
    return true;
  }
  if (k.invariants()) check_context(k, flags);
  if (Memguard* memguard = k.vm->memguard.get()) {
    if (memguard->wants(*size, mtp->ks_shortdesc)) {
      *addr = memguard->alloc(*size, flags, false);
      if (*addr != nullptr) return true;
    }
  }
  *size = redzone_size(k, *size);
  return false;
}

bool free_dbg(Kernel::Impl& k, void** addr, malloc_type* mtp) {
  if (k.invariants()) {
    check_version(k, mtp, "free");
    if (curcpu->critbase != 0) k.panic("free: called with spinlock or critical section held");
  }
  if (*addr == nullptr) return true;
  if (k.invariants()) check_type(k, mtp, "free");
  if (Memguard* memguard = k.vm->memguard.get(); memguard != nullptr && memguard->owns(*addr)) {
    memguard->free(*addr);
    return true;
  }
  if (k.redzone != nullptr) {
    k.redzone->check(*addr);
    *addr = k.redzone->addr_ntor(*addr);
  }
  return false;
}

void* redzone_setup(Kernel::Impl& k, void* addr, std::size_t osize) {
  return addr == nullptr || k.redzone == nullptr ? addr : k.redzone->setup(addr, osize);
}

std::size_t redzone_size(const Kernel::Impl& k, std::size_t size) {
  return k.redzone == nullptr ? size : Redzone::size_ntor(size);
}

void Kernel::Impl::check_store(void* addr, std::size_t size, const char* function) {
  if (size == 0) return;
  check_mapped(addr, size, true);
  for (std::uint64_t page = vm->page_of(addr),
                     last = vm->page_of(static_cast<std::byte*>(addr) + size - 1);
       page <= last; ++page) {
    const std::uintptr_t word = vm->page_slab[page].load(std::memory_order_acquire);
    if (word != 0 && (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR && is_machinery(word))
      panic("not modelled: %s of %p writes over UMA's own memory", function, addr);
  }
}

void Kernel::Impl::check_mapped(const void* addr, std::size_t size, bool write) {
  const auto* const first = static_cast<const std::byte*>(addr);
  const bool known = vm->in_arena(first) && vm->in_arena(first + size - 1) && first + size > first;
  if (!known) page_fault(addr, write);
}

// The lines of a trap, shortened to what this machine has: UNVERIFIED.
void Kernel::Impl::page_fault(const void* addr, bool write) {
  cpus->console(kernel_format(addresses,
                              "\nFatal trap 12: page fault while in kernel mode\n"
                              "cpuid = %d\n"
                              "fault virtual address\t= %p\n"
                              "fault code\t\t= supervisor %s data, page not present\n",
                              curcpu->id, addr, write ? "write" : "read"));
  panic("page fault");
}

unsigned char Kernel::Impl::subzone_of(const char* desc) const {
  if (numzones == 1 || desc == nullptr || desc[0] == '\0') return 0;
  const int letter = static_cast<signed char>(desc[zone_offset % std::strlen(desc)]);
  return static_cast<unsigned char>(static_cast<unsigned>(letter) % numzones);
}

}  // namespace dtmalloc
