/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * KASSERT(9), panic(9), printf(9), critical_enter(9) on the kernel of the current CPU.
 *
 * Errors:        panic() unwinds as a C++ exception; KASSERT does so if the kernel has INVARIANTS.
 * Thread safety: as in the kernel.
 */
#ifndef DTMALLOC_COMPAT_SYS_SYSTM_H
#define DTMALLOC_COMPAT_SYS_SYSTM_H

#include <string.h>
#include <sys/cdefs.h>
#include <sys/types.h>

void kern_panic(const char* fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
int kern_printf(const char* fmt, ...) __attribute__((format(printf, 1, 2)));
int kern_invariants(void);
void kern_critical_enter(void);
void kern_critical_exit(void);

#define panic(...) kern_panic(__VA_ARGS__)
#define printf(...) kern_printf(__VA_ARGS__)
#define KASSERT(exp, msg)                                             \
  do {                                                                \
    if (__predict_false(kern_invariants() && !(exp))) kern_panic msg; \
  } while (0)
#define MPASS(ex) KASSERT((ex), ("Assertion %s failed at %s:%d", #ex, __FILE__, __LINE__))
#define CTASSERT(x) _Static_assert(x, "compile-time assertion failed")
#define critical_enter() kern_critical_enter()
#define critical_exit() kern_critical_exit()
#define bzero(buf, len) ((void)memset((buf), 0, (len)))
#define bcopy(from, to, len) ((void)memmove((to), (from), (len)))

#endif /* DTMALLOC_COMPAT_SYS_SYSTM_H */
