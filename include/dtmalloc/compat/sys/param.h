/* SPDX-License-Identifier: BSD-2-Clause */
/* Page and rounding macros of the modelled machine (amd64). Source: param.h(9). */
#ifndef DTMALLOC_COMPAT_SYS_PARAM_H
#define DTMALLOC_COMPAT_SYS_PARAM_H

#include <sys/cdefs.h>
#include <sys/types.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE (1 << PAGE_SHIFT)
#define PAGE_MASK (PAGE_SIZE - 1)
#define MAXCPU 1024

#define trunc_page(x) ((unsigned long)(x) & ~(unsigned long)PAGE_MASK)
#define round_page(x) (((unsigned long)(x) + PAGE_MASK) & ~(unsigned long)PAGE_MASK)
#define atop(x) ((unsigned long)(x) >> PAGE_SHIFT)
#define ptoa(x) ((unsigned long)(x) << PAGE_SHIFT)

#define howmany(x, y) (((x) + ((y)-1)) / (y))
#define nitems(x) (sizeof(x) / sizeof((x)[0]))
#define rounddown(x, y) (((x) / (y)) * (y))
#define roundup(x, y) ((((x) + ((y)-1)) / (y)) * (y))
#define roundup2(x, y) (((x) + ((y)-1)) & ~((y)-1))
#define rounddown2(x, y) ((x) & ~((y)-1))
#define powerof2(x) ((((x)-1) & (x)) == 0)
#ifndef MIN
#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
#endif

#endif /* DTMALLOC_COMPAT_SYS_PARAM_H */
