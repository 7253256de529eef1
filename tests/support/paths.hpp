// SPDX-License-Identifier: BSD-2-Clause
// Where the source tree and the command are, for the tests that read or start them.
#pragma once

#include <string>

namespace dtmalloc::support {

std::string source_dir();
std::string command();  // the path of dtmalloc

}  // namespace dtmalloc::support
