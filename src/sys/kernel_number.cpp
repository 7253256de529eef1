// SPDX-License-Identifier: BSD-2-Clause
// Numbers as tunables and sysctls are written.
//
// Counterpart:  sys/kern/kern_environment.c (getenv_quad)
#include "sys/kernel_number.hpp"

namespace dtmalloc {

std::optional<std::int64_t> parse_kernel_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with('0')) {
    base = 8;
  }
  std::int64_t value = 0;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    if (digit >= base) break;
    if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
  }
  if (at == 0) return std::nullopt;
  const std::string_view suffix = text.substr(at);
  static constexpr std::string_view kSuffixes = "kmgtKMGT";
  if (suffix.size() > 1) return std::nullopt;
  if (suffix.size() == 1) {
    const std::size_t power = kSuffixes.find(suffix[0]);
    if (power == kSuffixes.npos) return std::nullopt;
    if (__builtin_mul_overflow(value, std::int64_t{1} << (10 * (power % 4 + 1)), &value))
      return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace dtmalloc
