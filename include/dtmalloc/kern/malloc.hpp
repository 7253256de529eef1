// SPDX-License-Identifier: BSD-2-Clause
// malloc(9) for C++: flags, and the functions that act on the kernel of the current CPU.
//
// Example:
//   Kernel k{KernelConfig{}};
//   malloc_type& t = k.define_type("M_FOO", "foo");
//   void* p = k.malloc(100, &t, M_WAITOK | M_ZERO);
//   k.free(p, &t);
//
// Units:         sizes in bytes.
// Errors:        nullptr with M_NOWAIT; KernelPanic where the kernel panics.
// Thread safety: any thread; a thread that owns no CPU is given one.
// Source:        malloc(9); spec/malloc9.md 1 to 3.
#pragma once

#include <dtmalloc/kern/malloc_type.h>

#include <cstddef>
#include <cstdint>
#include <dtmalloc/vm/domainset.hpp>

namespace dtmalloc {

// The bits, as the kernel numbers them.
enum MallocFlagBits : int {
  kM_NOWAIT = 0x0001,
  kM_WAITOK = 0x0002,
  kM_NORECLAIM = 0x0080,
  kM_ZERO = 0x0100,
  kM_NOVM = 0x0200,
  kM_USE_RESERVE = 0x0400,
  kM_NODUMP = 0x0800,
  kM_FIRSTFIT = 0x1000,
  kM_BESTFIT = 0x2000,
  kM_EXEC = 0x4000,
  kM_NEXTFIT = 0x8000,
  kM_NEVERFREED = 0x10000,
};

// One M_* constant; combines with |.
struct MallocFlag {
  int bits;
  constexpr MallocFlag operator|(MallocFlag other) const { return {bits | other.bits}; }
};
inline constexpr MallocFlag M_NOWAIT{kM_NOWAIT};
inline constexpr MallocFlag M_WAITOK{kM_WAITOK};
inline constexpr MallocFlag M_NORECLAIM{kM_NORECLAIM};
inline constexpr MallocFlag M_ZERO{kM_ZERO};
inline constexpr MallocFlag M_NOVM{kM_NOVM};
inline constexpr MallocFlag M_USE_RESERVE{kM_USE_RESERVE};
inline constexpr MallocFlag M_NODUMP{kM_NODUMP};
inline constexpr MallocFlag M_FIRSTFIT{kM_FIRSTFIT};
inline constexpr MallocFlag M_BESTFIT{kM_BESTFIT};
inline constexpr MallocFlag M_EXEC{kM_EXEC};
inline constexpr MallocFlag M_NEXTFIT{kM_NEXTFIT};
inline constexpr MallocFlag M_NEVERFREED{kM_NEVERFREED};

// The flags argument: exactly one of M_WAITOK and M_NOWAIT, checked at compile time.
// Flags known only at run time go through from_bits(); the kernel's KASSERTs judge them.
struct MallocFlags {
  int bits;
  consteval MallocFlags(MallocFlag flag) : bits(flag.bits) {
    if (((flag.bits & kM_NOWAIT) != 0) == ((flag.bits & kM_WAITOK) != 0))
      throw "flags must include exactly one of M_WAITOK and M_NOWAIT";
  }
  static constexpr MallocFlags from_bits(int bits) { return MallocFlags(bits, 0); }

 private:
  constexpr MallocFlags(int raw, int) : bits(raw) {}
};

}  // namespace dtmalloc

// The C ABI (also what compat/sys/malloc.h maps malloc(9)'s names to). These act on the kernel of
// the current CPU; kern_malloc and kern_free are the hot functions themselves.
extern "C" {
void* kern_malloc(std::size_t size, struct malloc_type* mtp, int flags);
void kern_free(void* addr, struct malloc_type* mtp);
void kern_zfree(void* addr, struct malloc_type* mtp);
void* kern_realloc(void* addr, std::size_t size, struct malloc_type* mtp, int flags);
void* kern_reallocf(void* addr, std::size_t size, struct malloc_type* mtp, int flags);
void* kern_mallocarray(std::size_t nmemb, std::size_t size, struct malloc_type* mtp, int flags);
void* kern_malloc_aligned(std::size_t size, std::size_t align, struct malloc_type* mtp, int flags);
void* kern_malloc_exec(std::size_t size, struct malloc_type* mtp, int flags);
void* kern_contigmalloc(unsigned long size, struct malloc_type* mtp, int flags, std::uint64_t low,
                        std::uint64_t high, unsigned long alignment, std::uint64_t boundary);
void* kern_malloc_domainset(std::size_t size, struct malloc_type* mtp, const struct domainset* ds,
                            int flags);
void* kern_malloc_domainset_exec(std::size_t size, struct malloc_type* mtp,
                                 const struct domainset* ds, int flags);
void* kern_malloc_domainset_aligned(std::size_t size, std::size_t align, struct malloc_type* mtp,
                                    const struct domainset* ds, int flags);
void* kern_mallocarray_domainset(std::size_t nmemb, std::size_t size, struct malloc_type* mtp,
                                 const struct domainset* ds, int flags);
void* kern_contigmalloc_domainset(unsigned long size, struct malloc_type* mtp,
                                  const struct domainset* ds, int flags, std::uint64_t low,
                                  std::uint64_t high, unsigned long alignment,
                                  std::uint64_t boundary);
void kern_contigfree(void* addr, unsigned long size, struct malloc_type* mtp);
std::size_t kern_malloc_size(std::size_t size);
std::size_t kern_malloc_usable_size(const void* addr);
void kern_malloc_type_allocated(struct malloc_type* mtp, unsigned long size);
void kern_malloc_type_freed(struct malloc_type* mtp, unsigned long size);
void kern_malloc_init(void* type);
void kern_malloc_uninit(void* type);
struct malloc_type* kern_malloc_desc2type(const char* desc);
void kern_malloc_type_list(void (*func)(struct malloc_type*, void*), void* arg);

// MALLOC_DEFINE's constructor and destructor functions: the type belongs to the default kernel, the
// present one or the next. The kernel's own static types are M_CACHE, M_DEVBUF and M_TEMP.
void kern_static_type_register(struct malloc_type* mtp);
void kern_static_type_unregister(struct malloc_type* mtp);
extern struct malloc_type M_CACHE[1];
extern struct malloc_type M_DEVBUF[1];
extern struct malloc_type M_TEMP[1];

// The same hot functions with no probe sites at all, for comparison in benches. A mask bit, a miss
// and everything else unusual is handled as ever, but no hook is called.
void* kern_malloc_nohooks(std::size_t size, struct malloc_type* mtp, int flags);
void kern_free_nohooks(void* addr, struct malloc_type* mtp);
}
