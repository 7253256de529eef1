// SPDX-License-Identifier: BSD-2-Clause
// The only file that knows absolute paths.
#include "support/paths.hpp"

namespace dtmalloc::support {

std::string source_dir() { return DTM_SOURCE_DIR; }
std::string command() { return DTM_COMMAND; }

}  // namespace dtmalloc::support
