// SPDX-License-Identifier: BSD-2-Clause
// Numbers for people, as libxo scales them.
// Counterpart:  contrib/libxo (xo_humanize)

#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {

std::string humanize(std::uint64_t value, std::uint64_t divisor, bool decimal) {
  // What does not fit a signed number is a negative total; libxo shows it so.
  if (static_cast<std::int64_t>(value) < 0) return "0.0E";
  static constexpr std::string_view kDecimal = " kMGTPE";
  static constexpr std::string_view kBinary = " KMGTPE";
  std::uint64_t quotient = value, remainder = 0;
  std::size_t scale = 0;
  while (quotient >= divisor && scale + 1 < kDecimal.size()) {
    remainder = quotient % divisor;
    quotient /= divisor;
    ++scale;
  }
  if (scale == 0) return std::to_string(value);
  std::string out;
  const bool tenths = quotient < 9 || (quotient == 9 && remainder < (divisor * 95 + 99) / 100);
  if (decimal && tenths) {
    const std::uint64_t tenth = (remainder * 10 + divisor / 2) / divisor;
    out = std::to_string(quotient + tenth / 10) + '.' + std::to_string(tenth % 10);
  } else {
    out = std::to_string(quotient + (remainder + divisor / 2) / divisor);
  }
  out += (divisor == 1000 ? kDecimal : kBinary)[scale];
  return out;
}

}  // namespace dtmalloc::report
