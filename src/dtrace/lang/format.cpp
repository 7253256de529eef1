// SPDX-License-Identifier: BSD-2-Clause
// printf's format string.
// Counterpart:  dt_printf.c (dt_printf_create)
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// What may follow '%', flags, width and precision.
constexpr std::string_view kNames[] = {
    "a",  "A",   "c",   "C",   "d",   "e",   "E",   "f",  "g",  "G",  "hd", "hi", "ho",
    "hu", "hx",  "hX",  "i",   "I",   "k",   "lc",  "ld", "li", "lo", "lu", "ls", "lx",
    "lX", "lld", "lli", "llo", "llu", "llx", "llX", "Le", "LE", "Lf", "Lg", "LG", "o",
    "p",  "P",   "s",   "S",   "T",   "u",   "wc",  "ws", "x",  "X",  "Y"};

}  // namespace

Format parse_format(const SourceText& source, const Place& place, const std::string& text,
                    std::string_view function) {
  if (text.empty()) {
    source.fail("D_PRINTF_FMT_EMPTY", place, fmt::format("{}( ) format string is empty", function));
  }
  Format format;
  format.text = text;
  Conversion conversion;
  unsigned number = 0;
  const auto refuse = [&](const std::string& what) {
    source.fail("D_SYNTAX", place, fmt::format("format conversion #{} {}", number, what));
  };
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      conversion.literal += text[i++];
      continue;
    }
    ++i;
    ++number;
    bool star = false;
    bool dot = false;
    bool flags = true;
    bool any = false;
    for (; flags && i < text.size(); any = true) {
      switch (text[i]) {
        case '#':
          conversion.alternate = true;
          break;
        case '0':
          conversion.zero = true;
          break;
        case '-':
          conversion.left = true;
          break;
        case '+':
          conversion.plus = true;
          break;
        case ' ':
          conversion.space = true;
          break;
        case '\'':
          conversion.group = true;
          break;
        case '?':
          conversion.width = 16;
          break;
        case '@':
          conversion.aggregation = true;
          break;
        default:
          flags = false;
          break;
      }
      if (!flags) break;
      ++i;
    }
    const auto digits = [&] {
      int value = 0;
      while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
        if (value < 100000) value = value * 10 + (text[i] - '0');
        ++i;
      }
      return value;
    };
    for (;; any = true) {
      const char c = i < text.size() ? text[i] : '\0';
      if (c == '*') {
        if (star) {
          refuse(fmt::format("has more than one '*' specified for the output {}",
                             dot ? "precision" : "width"));
        }
        star = true;
        (dot ? conversion.precision_arg : conversion.width_arg) = true;
        ++i;
      } else if (c == '.') {
        if (dot) refuse("has more than one '.' specified");
        dot = true;
        star = false;
        conversion.precision = 0;
        ++i;
      } else if (c >= '0' && c <= '9') {
        (dot ? conversion.precision : conversion.width) = digits();
      } else if (c == '$') {
        refuse("uses unsupported positional format (%n$)");
      } else {
        break;
      }
    }
    if (i >= text.size()) refuse("name expected before end of format string");
    if (text[i] == '%') {
      if (any) refuse("cannot be combined with other format flags: %%");
      --number;
      conversion.conversion = '%';
      ++i;
    } else {
      std::string name;
      while (i < text.size() && std::string_view("hlLw").find(text[i]) != std::string_view::npos) {
        name += text[i++];
      }
      if (i >= text.size()) refuse("name expected before end of format string");
      name += text[i++];
      bool known = false;
      for (const std::string_view candidate : kNames) known = known || candidate == name;
      if (!known) refuse(fmt::format("is undefined: %{}", name));
      conversion.conversion = name.back();
      name.pop_back();
      conversion.modifier = name;
    }
    format.conversions.push_back(std::move(conversion));
    conversion = {};
  }
  if (!conversion.literal.empty() || format.conversions.empty()) {
    format.conversions.push_back(std::move(conversion));
  }
  return format;
}

}  // namespace dtmalloc::dtrace
