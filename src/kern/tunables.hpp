// SPDX-License-Identifier: BSD-2-Clause
// Which names of sysctl(8) and loader.conf(5) a kernel has depends on its options.
#pragma once

#include <string_view>

namespace dtmalloc {

// The option of the kernel's build, and how it is set, without which `name` or everything below it
// does not exist; empty: none is known.
std::string_view needed_option(std::string_view name);

}  // namespace dtmalloc
