// SPDX-License-Identifier: BSD-2-Clause
// M_WAITOK and M_NOWAIT exclude each other.
// error: exactly one of M_WAITOK and M_NOWAIT

#include <dtmalloc/kern/malloc.hpp>

void take(dtmalloc::MallocFlags flags);

void call() {
#ifdef FIXED
  take(dtmalloc::M_WAITOK | dtmalloc::M_ZERO);
#else
  take(dtmalloc::M_WAITOK | dtmalloc::M_NOWAIT);
#endif
}
