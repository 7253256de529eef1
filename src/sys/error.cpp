// SPDX-License-Identifier: BSD-2-Clause
// The end of a bug of ours: say where, then abort.
#include <cstdio>
#include <cstdlib>
#include <dtmalloc/sys/error.hpp>

namespace dtmalloc {

void check_failed(const char* file, int line, const char* expression, const char* text) {
  std::fprintf(stderr, "dtmalloc: bug at %s:%d: %s (%s)\n", file, line, text, expression);
  std::abort();
}

}  // namespace dtmalloc
