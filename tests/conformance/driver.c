/* SPDX-License-Identifier: BSD-2-Clause
 * Kernel C as a driver has it: MALLOC_DEFINE, and malloc as the macro that it is. */
#include <sys/domainset.h>
#include <sys/malloc.h>
#include <sys/param.h>
#include <sys/systm.h>

/* The structs of kern.malloc_stats come with the header, as in the kernel. */
_Static_assert(sizeof(struct malloc_type_stream_header) == 16 &&
                   sizeof(struct malloc_type_header) == MALLOC_MAX_NAME,
               "stream");

static MALLOC_DEFINE(M_DRIVER, "driver", "a long description, which no kernel keeps");

struct malloc_type* driver_type(void);
void* driver_zeroed_constant(void);
void* driver_zeroed(size_t size);
void driver_free(void* block);
void driver_domains(void* blocks[5]);
int driver_would_overflow(size_t nmemb, size_t size);
int driver_flag(int index);
void driver_list(malloc_type_list_func_t* func, void* arg);

struct malloc_type* driver_type(void) {
  return (M_DRIVER);
}
void* driver_zeroed_constant(void) { return (malloc(100, M_DRIVER, M_WAITOK | M_ZERO)); }
void* driver_zeroed(size_t size) { return (malloc(size, M_DRIVER, M_WAITOK | M_ZERO)); }
void driver_free(void* block) { free(block, M_DRIVER); }

/* A block of each function with a set, all of domain 1. */
void driver_domains(void* blocks[5]) {
  struct domainset upper = {.ds_policy = DOMAINSET_POLICY_ROUNDROBIN, .ds_prefer = -1};

  DOMAINSET_ZERO(&upper.ds_mask);
  DOMAINSET_SET(1, &upper.ds_mask);
  blocks[0] = malloc_domainset(100, M_DRIVER, &upper, M_WAITOK);
  blocks[1] = malloc_domainset_exec(100, M_DRIVER, DOMAINSET_FIXED(1), M_WAITOK);
  blocks[2] = malloc_domainset_aligned(100, 64, M_DRIVER, DOMAINSET_PREF(1), M_WAITOK);
  blocks[3] = mallocarray_domainset(2, 50, M_DRIVER, DOMAINSET_FIXED(1), M_WAITOK);
  blocks[4] =
      contigmalloc_domainset(100, M_DRIVER, DOMAINSET_FIXED(1), M_WAITOK, 0, ~0ul, PAGE_SIZE, 0);
}

int driver_would_overflow(size_t nmemb, size_t size) { return (WOULD_OVERFLOW(nmemb, size)); }
void driver_list(malloc_type_list_func_t* func, void* arg) { malloc_type_list(func, arg); }

int driver_flag(int index) {
  static const int flags[] = {M_NOWAIT, M_WAITOK,   M_NORECLAIM, M_ZERO, M_NOVM,    M_USE_RESERVE,
                              M_NODUMP, M_FIRSTFIT, M_BESTFIT,   M_EXEC, M_NEXTFIT, M_NEVERFREED};

  return (flags[index]);
}
