/* SPDX-License-Identifier: BSD-2-Clause */
/* <sys/kernel.h>: boot order and module hooks are not modelled; MALLOC_DEFINE registers by itself.
 */
#ifndef DTMALLOC_COMPAT_SYS_KERNEL_H
#define DTMALLOC_COMPAT_SYS_KERNEL_H

#include <sys/cdefs.h>

#define SYSINIT(uniquifier, subsystem, order, func, ident) \
  _Static_assert(0, "not modelled: SYSINIT(" #uniquifier ")")
#define SYSUNINIT(uniquifier, subsystem, order, func, ident) \
  _Static_assert(0, "not modelled: SYSUNINIT(" #uniquifier ")")

#endif /* DTMALLOC_COMPAT_SYS_KERNEL_H */
