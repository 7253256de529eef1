// SPDX-License-Identifier: BSD-2-Clause
// dtmalloc's load under another name, which the framework may refuse.
#pragma once

#include <string_view>

namespace dtmalloc {
class Kernel;
}

namespace dtmalloc::dtrace {

class Framework;
int load_dtmalloc_as(std::string_view name, Framework& framework, Kernel& kernel);

}  // namespace dtmalloc::dtrace
