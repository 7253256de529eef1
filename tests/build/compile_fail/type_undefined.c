// SPDX-License-Identifier: BSD-2-Clause
// A type is declared or defined before it is used.
// error: 'M_KMOD' undeclared|use of undeclared identifier 'M_KMOD'

#include <sys/malloc.h>

#ifdef FIXED
MALLOC_DECLARE(M_KMOD);
#endif

void* make(void);

void* make(void) { return malloc(100, M_KMOD, M_WAITOK); }
