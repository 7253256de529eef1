// SPDX-License-Identifier: BSD-2-Clause
// Kinds of characters, whatever the locale.
#pragma once

namespace dtmalloc::dtrace {

constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_alpha(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
constexpr bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool is_word(char c) { return is_alpha(c) || is_digit(c) || c == '_'; }

}  // namespace dtmalloc::dtrace
