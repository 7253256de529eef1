/* SPDX-License-Identifier: BSD-2-Clause */
/* domainset(9) for kernel C: DOMAINSET_RR() and the other sets of NUMA domains. */
#ifndef DTMALLOC_COMPAT_SYS_DOMAINSET_H
#define DTMALLOC_COMPAT_SYS_DOMAINSET_H

#include <dtmalloc/vm/domainset.h>

#endif /* DTMALLOC_COMPAT_SYS_DOMAINSET_H */
