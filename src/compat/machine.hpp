// SPDX-License-Identifier: BSD-2-Clause
// Which machine kernel C runs on.
#pragma once

#include <dtmalloc/kernel.hpp>

namespace dtmalloc {

// That of this thread: an unbound thread gets a CPU of the default kernel, as a malloc() of its own
// would.
Kernel& compat_machine();

}  // namespace dtmalloc
