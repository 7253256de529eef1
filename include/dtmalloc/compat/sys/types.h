/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's <sys/types.h> and the kernel's own integer types. */
#ifndef DTMALLOC_COMPAT_SYS_TYPES_H
#define DTMALLOC_COMPAT_SYS_TYPES_H

#pragma GCC system_header
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include_next <sys/types.h>

typedef uint64_t vm_offset_t;
typedef uint64_t vm_paddr_t;
typedef uint64_t vm_size_t;

#endif /* DTMALLOC_COMPAT_SYS_TYPES_H */
