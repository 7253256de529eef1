// SPDX-License-Identifier: BSD-2-Clause
// INVARIANTS: free items of the malloc zones hold junk, and in their last word the type of who
// freed them; an item that is handed out is looked at first.
//
// Counterpart:  sys/vm/uma_dbg.c (mtrash_*), sys/kern/kern_malloc.c (free_save_type)
// Locking:      none; an item has one owner at a time
// Differs:      DEVIATES: a last word that is not the address of a type of this kernel, or of a
// user's
//               type that is registered no more, prints as a pointer: a kernel reads through any
//               word that looks like an address of its own
#include <cstring>

#include "kern/kernel_impl.hpp"
#include "kern/ledger_impl.hpp"
#include "vm/memguard.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kJunk = 0xdeadc0dedeadc0de;

std::size_t junk_words(int size) { return static_cast<std::size_t>(size) / 8 - 1; }

void fill(void* mem, int size) {
  auto* words = static_cast<std::byte*>(mem);
  for (std::size_t i = 0; i < junk_words(size); ++i) std::memcpy(words + 8 * i, &kJunk, 8);
}

void check(void* mem, int size, const char* zone) {
  const auto* words = static_cast<const std::byte*>(mem);
  for (std::size_t i = 0; i < junk_words(size); ++i) {
    unsigned long word;
    std::memcpy(&word, words + 8 * i, 8);
    if (word == kJunk) continue;
    malloc_type* mtp;
    std::memcpy(&mtp, words + 8 * junk_words(size), 8);
    Kernel::Impl& k = static_cast<Kernel*>(curcpu->kernel)->impl();
    if (k.ledger != nullptr) k.ledger->impl().modified(mem);
    const int offset = static_cast<int>(8 * i);
    if (mtp == nullptr || !k.readable_type(mtp))
      k.panic("Memory modified after free %p (%d, %s, %p) + %d = %lx\n", mem, size, zone,
              static_cast<void*>(mtp), offset, word);
    k.cpus->console(kernel_format(k.addresses,
                                  "Memory modified after free %p (%d, %s, %p) + %d = %lx\n", mem,
                                  size, zone, static_cast<void*>(mtp), offset, word));
    k.panic("Memory modified after free %p (%d, %s, %s) + %d = %lx\n", mem, size, zone,
            mtp->ks_shortdesc, offset, word);
  }
}

// A guarded block holds no junk.
bool guarded(const void* mem) {
  const Memguard* memguard = static_cast<Kernel*>(curcpu->kernel)->impl().vm->memguard.get();
  return memguard != nullptr && memguard->owns(mem);
}

int mtrash_ctor(void* mem, int size, void* arg, int) {
  if (guarded(mem)) return 0;
  // Without an argument the zone has no name, as in fini: UNVERIFIED for the older releases.
  const auto* zone = static_cast<const uma_zone*>(arg);
  check(mem, size, zone == nullptr ? "" : zone->uz_name);
  return 0;
}

void mtrash_dtor(void* mem, int size, void*) {
  if (!guarded(mem)) fill(mem, size);
}

int mtrash_init(void* mem, int size, int) {
  fill(mem, size);
  std::memset(static_cast<std::byte*>(mem) + 8 * junk_words(size), 0, 8);
  return 0;
}

void mtrash_fini(void* mem, int size) { check(mem, size, ""); }

}  // namespace

void mtrash_attach(uma_zone& zone) {
  zone.uz_flags |= UMA_ZFLAG_CTORDTOR;
  zone.uz_ctor = mtrash_ctor;
  zone.uz_dtor = mtrash_dtor;
  zone.uz_keg->uk_init = mtrash_init;
  zone.uz_keg->uk_fini = mtrash_fini;
}

void free_save_type(void* addr, malloc_type* mtp, std::size_t size) {
  const auto at = reinterpret_cast<std::uintptr_t>(addr) & ~std::uintptr_t{7};
  std::memcpy(reinterpret_cast<std::byte*>(at) + size - sizeof mtp, &mtp, sizeof mtp);
}

}  // namespace dtmalloc
