// SPDX-License-Identifier: BSD-2-Clause
// printf(9)'s formatting for messages of the simulated kernel.
#include "sys/format.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dtmalloc/sys/error.hpp>

namespace dtmalloc {
namespace {

template <typename T>
void append(std::string& out, const std::string& spec, T value) {
  char buffer[128];
  const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  DTM_CHECK(length >= 0, "a kernel message has a format that printf refuses");
  if (static_cast<std::size_t>(length) < sizeof buffer) {
    out.append(buffer, static_cast<std::size_t>(length));
    return;
  }
  std::string large(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(large.data(), large.size(), spec.c_str(), value);
  large.pop_back();
  out += large;
}

}  // namespace

std::string kernel_vformat(const AddressMap& map, const char* format, std::va_list arguments) {
  std::va_list args;
  va_copy(args, arguments);
  std::string out;
  for (const char* p = format; *p != '\0'; ++p) {
    if (*p != '%') {
      out += *p;
      continue;
    }
    std::string spec = "%";
    ++p;
    const char* const begin = p - 1;
    for (; *p != '\0' && std::strchr("-+ #0123456789.*", *p) != nullptr; ++p)
      spec += *p == '*' ? std::to_string(va_arg(args, int)) : std::string(1, *p);
    std::string length;
    while (*p != '\0' && std::strchr("hlzjt", *p) != nullptr) length += *p++;
    const char kind = *p;
    switch (kind) {
      case 'd':
      case 'i':
        if (length.empty() || length[0] == 'h')
          append(out, spec + kind, va_arg(args, int));
        else
          append(out, spec + PRIdMAX, static_cast<std::intmax_t>(va_arg(args, long)));
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        if (length.empty() || length[0] == 'h')
          append(out, spec + kind, va_arg(args, unsigned));
        else
          append(out, spec + "l" + kind, va_arg(args, unsigned long));
        break;
      case 'c':
        append(out, spec + kind, va_arg(args, int));
        break;
      case 's': {
        const char* text = va_arg(args, const char*);
        append(out, spec + kind, text == nullptr ? "(null)" : text);
        break;
      }
      case 'p': {
        const void* host = va_arg(args, const void*);
        append(out, std::string("%#lx"), static_cast<unsigned long>(map.to_printed(host)));
        break;
      }
      case '%':
        out += '%';
        break;
      default:  // the kernel prints the rest as it stands
        out += begin;
        va_end(args);
        return out;
    }
  }
  va_end(args);
  return out;
}

std::string kernel_format(const AddressMap& map, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::string out = kernel_vformat(map, format, arguments);
  va_end(arguments);
  return out;
}

}  // namespace dtmalloc
