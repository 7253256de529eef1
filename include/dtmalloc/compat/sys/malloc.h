/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc(9) for kernel C: the shadow of <sys/malloc.h>.
 *
 * Put include/dtmalloc/compat first on the include path (the target dtmalloc::compat does) and
 * compile a driver's file unchanged:
 *
 *	#include <sys/param.h>
 *	#include <sys/malloc.h>
 *	static MALLOC_DEFINE(M_FOO, "foo", "Foo driver");
 *	void *p = malloc(100, M_FOO, M_WAITOK | M_ZERO);
 *	free(p, M_FOO);
 *
 * The names are function-like macros over kern_malloc() and friends, so (malloc) is still libc's.
 * The functions act on the kernel of the calling thread's CPU; a thread that owns none is given
 * one of the default kernel. Types made with MALLOC_DEFINE belong to the default kernel.
 *
 * Errors:        NULL with M_NOWAIT; a panic is a C++ exception that unwinds through C frames
 *                (compile with -fexceptions, which dtmalloc::compat adds).
 * Thread safety: as malloc(9).
 * Source:        malloc(9); spec/malloc9.md 1.
 */
#ifndef DTMALLOC_COMPAT_SYS_MALLOC_H
#define DTMALLOC_COMPAT_SYS_MALLOC_H

#ifdef __cplusplus
#error "kernel C only; C++ includes <dtmalloc/kernel.hpp>"
#endif

#include <dtmalloc/kern/malloc_stream.h>
#include <dtmalloc/kern/malloc_type.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MINALLOCSIZE 8

#define M_NOWAIT 0x0001
#define M_WAITOK 0x0002
#define M_NORECLAIM 0x0080
#define M_ZERO 0x0100
#define M_NOVM 0x0200
#define M_USE_RESERVE 0x0400
#define M_NODUMP 0x0800
#define M_FIRSTFIT 0x1000
#define M_BESTFIT 0x2000
#define M_EXEC 0x4000
#define M_NEXTFIT 0x8000
#define M_NEVERFREED 0x10000

struct domainset; /* <sys/domainset.h> */

typedef void malloc_type_list_func_t(struct malloc_type*, void*);

void* kern_malloc(size_t size, struct malloc_type* type, int flags);
void kern_free(void* addr, struct malloc_type* type);
void kern_zfree(void* addr, struct malloc_type* type);
void* kern_realloc(void* addr, size_t size, struct malloc_type* type, int flags);
void* kern_reallocf(void* addr, size_t size, struct malloc_type* type, int flags);
void* kern_mallocarray(size_t nmemb, size_t size, struct malloc_type* type, int flags);
void* kern_malloc_aligned(size_t size, size_t align, struct malloc_type* type, int flags);
void* kern_malloc_exec(size_t size, struct malloc_type* type, int flags);
void* kern_contigmalloc(unsigned long size, struct malloc_type* type, int flags, uint64_t low,
                        uint64_t high, unsigned long alignment, uint64_t boundary);
void* kern_malloc_domainset(size_t size, struct malloc_type* type, const struct domainset* ds,
                            int flags);
void* kern_malloc_domainset_exec(size_t size, struct malloc_type* type, const struct domainset* ds,
                                 int flags);
void* kern_malloc_domainset_aligned(size_t size, size_t align, struct malloc_type* type,
                                    const struct domainset* ds, int flags);
void* kern_mallocarray_domainset(size_t nmemb, size_t size, struct malloc_type* type,
                                 const struct domainset* ds, int flags);
void* kern_contigmalloc_domainset(unsigned long size, struct malloc_type* type,
                                  const struct domainset* ds, int flags, uint64_t low,
                                  uint64_t high, unsigned long alignment, uint64_t boundary);
void kern_contigfree(void* addr, unsigned long size, struct malloc_type* type);
size_t kern_malloc_size(size_t size);
size_t kern_malloc_usable_size(const void* addr);
void kern_malloc_type_allocated(struct malloc_type* type, unsigned long size);
void kern_malloc_type_freed(struct malloc_type* type, unsigned long size);
void kern_malloc_init(void* type);
void kern_malloc_uninit(void* type);
struct malloc_type* kern_malloc_desc2type(const char* desc);
void kern_malloc_type_list(malloc_type_list_func_t* func, void* arg);
void kern_static_type_register(struct malloc_type* type);
void kern_static_type_unregister(struct malloc_type* type);

/* A zeroed block of constant size: only the bytes asked for are cleared, by the caller. */
static inline void* __attribute__((unused))
dtm_malloc_zeroed(size_t size, struct malloc_type* type, int flags) {
  void* block = kern_malloc(size, type, flags & ~M_ZERO);

  if ((flags & M_WAITOK) != 0 || block != NULL) memset(block, 0, size);
  return (block);
}

#define malloc(size, type, flags)                                                  \
  ((__builtin_constant_p(size) && __builtin_constant_p(flags) && ((flags)&M_ZERO)) \
       ? dtm_malloc_zeroed((size), (type), (flags))                                \
       : kern_malloc((size), (type), (flags)))
#define free(addr, type) kern_free((addr), (type))
#define zfree(addr, type) kern_zfree((addr), (type))
#define realloc(addr, size, type, flags) kern_realloc((addr), (size), (type), (flags))
#define reallocf(addr, size, type, flags) kern_reallocf((addr), (size), (type), (flags))
#define mallocarray(nmemb, size, type, flags) kern_mallocarray((nmemb), (size), (type), (flags))
#define malloc_aligned(size, align, type, flags) \
  kern_malloc_aligned((size), (align), (type), (flags))
#define malloc_exec(size, type, flags) kern_malloc_exec((size), (type), (flags))
#define contigmalloc(size, type, flags, low, high, alignment, boundary) \
  kern_contigmalloc((size), (type), (flags), (low), (high), (alignment), (boundary))
#define malloc_domainset(size, type, ds, flags) kern_malloc_domainset((size), (type), (ds), (flags))
#define malloc_domainset_exec(size, type, ds, flags) \
  kern_malloc_domainset_exec((size), (type), (ds), (flags))
#define malloc_domainset_aligned(size, align, type, ds, flags) \
  kern_malloc_domainset_aligned((size), (align), (type), (ds), (flags))
#define mallocarray_domainset(nmemb, size, type, ds, flags) \
  kern_mallocarray_domainset((nmemb), (size), (type), (ds), (flags))
#define contigmalloc_domainset(size, type, ds, flags, low, high, alignment, boundary) \
  kern_contigmalloc_domainset((size), (type), (ds), (flags), (low), (high), (alignment), (boundary))
#define contigfree(addr, size, type) kern_contigfree((addr), (size), (type))
#define malloc_size(size) kern_malloc_size(size)
#define malloc_usable_size(addr) kern_malloc_usable_size(addr)
#define malloc_type_allocated(type, size) kern_malloc_type_allocated((type), (size))
#define malloc_type_freed(type, size) kern_malloc_type_freed((type), (size))
#define malloc_init(type) kern_malloc_init(type)
#define malloc_uninit(type) kern_malloc_uninit(type)
#define malloc_desc2type(desc) kern_malloc_desc2type(desc)
#define malloc_type_list(func, arg) kern_malloc_type_list((func), (arg))

#define WOULD_OVERFLOW(nmemb, size)                                      \
  ((((uint64_t)(nmemb) | (uint64_t)(size)) >> 32) != 0 && (nmemb) > 0 && \
   SIZE_MAX / (size_t)(nmemb) < (size_t)(size))

#define MALLOC_DECLARE(type) extern struct malloc_type type[1]

/* The long description is discarded, as the kernel does. */
#define MALLOC_DEFINE(type, shortdesc, longdesc)                                       \
  struct malloc_type type[1] = {{.ks_version = M_VERSION, .ks_shortdesc = shortdesc}}; \
  static void __attribute__((constructor)) type##_init(void) {                         \
    (void)sizeof(longdesc);                                                            \
    kern_static_type_register(type);                                                   \
  }                                                                                    \
  static void __attribute__((destructor)) type##_uninit(void) {                        \
    kern_static_type_unregister(type);                                                 \
  }                                                                                    \
  struct malloc_type_semicolon

MALLOC_DECLARE(M_CACHE);
MALLOC_DECLARE(M_DEVBUF);
MALLOC_DECLARE(M_TEMP);
/* Other parts of a kernel define these: a program that uses one defines it. */
MALLOC_DECLARE(M_IOV);
MALLOC_DECLARE(M_PARGS);
MALLOC_DECLARE(M_SESSION);
MALLOC_DECLARE(M_SUBPROC);

#endif /* DTMALLOC_COMPAT_SYS_MALLOC_H */
