// SPDX-License-Identifier: BSD-2-Clause
// trace() of a value by its recorded size; dumps; keys.
// Counterpart:  dt_consume.c (dt_print_bytes, dt_print_rawbytes, dt_print_datum)
#include "dtrace/consume/format.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace dtmalloc::dtrace {
namespace {

// isprint, isspace, backspace or bell, whatever the locale.
bool is_text(std::byte byte) {
  const auto c = std::to_integer<unsigned char>(byte);
  return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r') || c == '\b' || c == '\a';
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Text in `width` columns, negative: at the left; what is no text as a dump.
void print_bytes(std::string& out, std::span<const std::byte> bytes, int width, bool quiet,
                 bool rawbytes) {
  if (!rawbytes) {
    const std::byte* end = std::find_if_not(bytes.data(), bytes.data() + bytes.size(), is_text);
    const auto length = static_cast<std::size_t>(end - bytes.data());
    const bool zeros_follow = std::all_of(end, bytes.data() + bytes.size(),
                                          [](std::byte byte) { return byte == std::byte{0}; });
    if (length > 0 && zeros_follow) {
      const std::string_view text = as_text(bytes.first(length));
      // Without a NUL the text is padded even when quiet.
      if (quiet && length < bytes.size()) {
        out += text;
      } else {
        append(out, "  %*.*s", width, static_cast<int>(text.size()), text.data());
      }
      return;
    }
  }
  print_dump(out, bytes);
}

}  // namespace

void append(std::string& out, const char* format, ...) {
  char small[512];
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(small, sizeof(small), format, arguments);
  va_end(arguments);
  if (length >= 0 && static_cast<std::size_t>(length) < sizeof(small)) {
    out.append(small, static_cast<std::size_t>(length));
  } else if (length > 0) {
    std::string big(static_cast<std::size_t>(length) + 1, '\0');
    std::vsnprintf(big.data(), big.size(), format, again);
    big.resize(static_cast<std::size_t>(length));
    out += big;
  }
  va_end(again);
}

std::uint64_t unsigned_value(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
  return value;
}

std::int64_t signed_value(std::span<const std::byte> bytes) {
  const std::uint64_t value = unsigned_value(bytes);
  switch (bytes.size()) {
    case 1:
      return static_cast<std::int8_t>(value);
    case 2:
      return static_cast<std::int16_t>(value);
    case 4:
      return static_cast<std::int32_t>(value);
    default:
      return static_cast<std::int64_t>(value);
  }
}

void print_traced(std::string& out, std::span<const std::byte> bytes, bool quiet, bool rawbytes) {
  switch (bytes.size()) {
    case 8:
      append(out, quiet ? "%lld" : " %16lld", static_cast<long long>(signed_value(bytes)));
      break;
    case 4:
      append(out, quiet ? "%d" : " %8d", static_cast<int>(signed_value(bytes)));
      break;
    case 2:
      append(out, quiet ? "%d" : " %5d", static_cast<int>(unsigned_value(bytes)));
      break;
    case 1:
      append(out, quiet ? "%d" : " %3d", static_cast<int>(unsigned_value(bytes)));
      break;
    default:
      print_bytes(out, bytes, -33, quiet, rawbytes);
      break;
  }
}

void print_dump(std::string& out, std::span<const std::byte> bytes) {
  constexpr std::size_t kColumns = 16;
  out += "\n           ";
  for (std::size_t i = 0; i < kColumns; ++i) append(out, "  %c", "0123456789abcdef"[i]);
  out += "  0123456789abcdef\n";
  for (std::size_t row = 0; row < bytes.size(); row += kColumns) {
    append(out, "     %5zx:", row);
    std::string text;
    for (std::size_t i = row; i < row + kColumns; ++i) {
      if (i >= bytes.size()) {
        out += "   ";
        continue;
      }
      const auto c = std::to_integer<unsigned char>(bytes[i]);
      append(out, " %02x", c);
      text += c >= ' ' && c <= '~' ? static_cast<char>(c) : '.';
    }
    out += "  " + text + "\n";
  }
}

void print_key(std::string& out, const KeyPart& part, const SymbolText& symbols, bool packed) {
  if (part.desc.form != ValueForm::plain) {
    symbols.print(out, part.desc.form, std::as_bytes(std::span(part.bytes)));
    return;
  }
  if (part.desc.by_ref && part.desc.is_string) {
    append(out, packed ? "  %16s" : "  %-50s", part.bytes.c_str());
    return;
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(part.bytes));
  switch (bytes.size()) {
    case 1:
    case 2:
    case 4:
    case 8:
      print_traced(out, bytes, false, false);
      break;
    default:
      print_bytes(out, bytes, packed ? 16 : -50, false, false);
      break;
  }
}

}  // namespace dtmalloc::dtrace
