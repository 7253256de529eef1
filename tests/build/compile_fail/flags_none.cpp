// SPDX-License-Identifier: BSD-2-Clause
// One of M_WAITOK and M_NOWAIT must be given.
// error: exactly one of M_WAITOK and M_NOWAIT

#include <dtmalloc/kern/malloc.hpp>

void take(dtmalloc::MallocFlags flags);

void call() {
#ifdef FIXED
  take(dtmalloc::M_NOWAIT | dtmalloc::M_ZERO);
#else
  take(dtmalloc::M_ZERO);
#endif
}
