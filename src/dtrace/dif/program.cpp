// SPDX-License-Identifier: BSD-2-Clause
// Names of aggregating functions.
#include "dtrace/dif/program.hpp"

#include <array>

namespace dtmalloc::dtrace {

std::string_view to_string(AggFunction function) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "count", "sum", "min", "max", "avg", "stddev", "quantize", "lquantize", "llquantize"};
  return kNames[static_cast<std::size_t>(function)];
}

}  // namespace dtmalloc::dtrace
