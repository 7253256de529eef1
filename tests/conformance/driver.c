/* SPDX-License-Identifier: BSD-2-Clause
 * Kernel C as a driver has it: MALLOC_DEFINE, and malloc as the macro that it is. */
#include <sys/malloc.h>
#include <sys/param.h>
#include <sys/systm.h>

static MALLOC_DEFINE(M_DRIVER, "driver", "a long description, which no kernel keeps");

struct malloc_type* driver_type(void);
void* driver_zeroed_constant(void);
void* driver_zeroed(size_t size);
void driver_free(void* block);

struct malloc_type* driver_type(void) {
  return (M_DRIVER);
}
void* driver_zeroed_constant(void) { return (malloc(100, M_DRIVER, M_WAITOK | M_ZERO)); }
void* driver_zeroed(size_t size) { return (malloc(size, M_DRIVER, M_WAITOK | M_ZERO)); }
void driver_free(void* block) { free(block, M_DRIVER); }
