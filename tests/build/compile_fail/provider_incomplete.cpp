// SPDX-License-Identifier: BSD-2-Clause
// A provider defines provide, enable and disable.
// error: abstract

#include <dtmalloc/dtrace/provider.hpp>

struct Incomplete : dtmalloc::dtrace::Provider {
  void provide(const dtmalloc::dtrace::ProbeDescription*) override {}
  void enable(dtmalloc::dtrace::ProbeId, void*) override {}
#ifdef FIXED
  void disable(dtmalloc::dtrace::ProbeId, void*) override {}
#endif
};

Incomplete provider;
