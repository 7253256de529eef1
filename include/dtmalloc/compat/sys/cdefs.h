/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's <sys/cdefs.h> and the compiler words that kernel C uses. */
#ifndef DTMALLOC_COMPAT_SYS_CDEFS_H
#define DTMALLOC_COMPAT_SYS_CDEFS_H

#pragma GCC system_header
#include_next <sys/cdefs.h>

#define __predict_true(exp) __builtin_expect((exp), 1)
#define __predict_false(exp) __builtin_expect((exp), 0)
#ifndef __unused
#define __unused __attribute__((__unused__))
#endif
#define __aligned(x) __attribute__((__aligned__(x)))
#define __packed __attribute__((__packed__))
#define __dead2 __attribute__((__noreturn__))

#endif /* DTMALLOC_COMPAT_SYS_CDEFS_H */
