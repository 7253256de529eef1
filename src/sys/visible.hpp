// SPDX-License-Identifier: BSD-2-Clause
// Names of users in texts of ours: no byte breaks a line or a column.
#pragma once

#include <string>
#include <string_view>

namespace dtmalloc {

// Bytes that would break a line or a column, as a workload writes them.
inline std::string visible(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

}  // namespace dtmalloc
