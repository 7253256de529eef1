// SPDX-License-Identifier: BSD-2-Clause
// printf() and printa() with a format: every conversion of spec/dtrace.md 14.
// Counterpart:  dt_printf.c
// Differs:      %P prints the number of the port. Widths and precisions end at kWidest.
#include <locale.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

// Columns: a hostile format must not take all memory.
constexpr std::int64_t kWidest = std::int64_t{1} << 20;

// As a conversion or its '*' gives them; 0: none.
struct Columns {
  std::int64_t width = 0;  // negative: left-justified
  std::int64_t precision = 0;
};

// Those of a conversion without '*'.
Columns columns_of(const Conversion& conversion) {
  return {std::max(conversion.width, 0), std::max(conversion.precision, 0)};
}

// Flags, width and precision as one C conversion; `length` is what C needs before the letter.
std::string c_conversion(const Conversion& conversion, const Columns& columns, const char* length,
                         char letter) {
  std::string text = "%";
  const bool left = conversion.left || columns.width < 0;
  const std::int64_t width = std::min(std::abs(columns.width), kWidest);
  const std::int64_t precision = std::min(columns.precision, kWidest);
  if (left) text += '-';
  if (conversion.plus) text += '+';
  if (conversion.space) text += ' ';
  if (conversion.alternate) text += '#';
  if (conversion.zero) text += '0';
  if (conversion.group) text += '\'';
  if (width > 0) text += std::to_string(width);
  // Precision 0 is no precision.
  if (precision > 0) text += "." + std::to_string(precision);
  text += length;
  text += letter;
  return text;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void append_number(std::string& out, const std::string& conversion, unsigned long long value) {
  append(out, conversion.c_str(), value);
}
void append_character(std::string& out, const std::string& conversion, int value) {
  append(out, conversion.c_str(), value);
}
template <typename Number>
void append_double(std::string& out, const std::string& conversion, Number value) {
  append(out, conversion.c_str(), value);
}
void append_string(std::string& out, const std::string& conversion, const std::string& value) {
  append(out, conversion.c_str(), value.c_str());
}
#pragma GCC diagnostic pop

std::string text_of(std::span<const std::byte> bytes) {
  const char* text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

// Unprintables as C writes them.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '\0':
        result += "\\0";
        break;
      case '\a':
        result += "\\a";
        break;
      case '\b':
        result += "\\b";
        break;
      case '\f':
        result += "\\f";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\v':
        result += "\\v";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '"':
        result += "\\\"";
        break;
      default:
        if (c >= ' ' && c <= '~') {
          result += c;
        } else {
          append(result, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
        break;
    }
  }
  return result;
}

// %Y and %T; the names of days and months are C's.
std::string time_text(std::int64_t nanoseconds, char letter, const TimeFormat& format) {
  std::int64_t seconds = nanoseconds / 1000000000;
  if (nanoseconds % 1000000000 < 0) --seconds;
  const auto when = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (format.local) {
    localtime_r(&when, &parts);
  } else {
    gmtime_r(&when, &parts);
    parts.tm_zone = "UTC";
  }
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  char text[128];
  const std::size_t length =
      strftime_l(text, sizeof(text), letter == 'Y' ? "%Y %b %e %H:%M:%S" : "%a, %d %b %G %T %Z",
                 &parts, c_locale);
  return {text, length};
}

// A wide character in UTF-8; what is none is a question mark.
void append_wide(std::string& out, std::uint32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = '?';
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kLeads[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLeads[following] | c >> (6 * following));
  for (int i = following - 1; i >= 0; --i) {
    out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
  }
}

std::string wide_text(std::span<const std::byte> bytes) {
  std::string text;
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    const auto c = static_cast<std::uint32_t>(unsigned_value(bytes.first(4)));
    if (c == 0) break;
    append_wide(text, c);
  }
  return text;
}

void append_floating(std::string& out, const std::function<std::string(const char*)>& conversion,
                     std::span<const std::byte> bytes) {
  if (bytes.size() == sizeof(float)) {
    float number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    append_double(out, conversion(""), static_cast<double>(number));
  } else if (bytes.size() == sizeof(double)) {
    double number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    append_double(out, conversion(""), number);
  } else {
    long double number = 0;
    std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
    append_double(out, conversion("L"), number);
  }
}

void print_conversion(std::string& out, const Conversion& conversion, const Columns& columns,
                      const Datum& datum, const TimeFormat& time) {
  const std::span<const std::byte> bytes = datum.bytes;
  const bool wide = conversion.modifier == "l" || conversion.modifier == "w";
  const auto c = [&](const char* length, char letter) {
    return c_conversion(conversion, columns, length, letter);
  };
  switch (conversion.conversion) {
    case 'd':
      if (datum.desc.is_signed) {
        append_number(out, c("ll", 'd'), static_cast<std::uint64_t>(signed_value(bytes)));
      } else {
        append_number(out, c("ll", 'u'), unsigned_value(bytes));
      }
      break;
    case 'i':
      append_number(out, c("ll", 'd'), static_cast<std::uint64_t>(signed_value(bytes)));
      break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      append_number(out, c("ll", conversion.conversion), unsigned_value(bytes));
      break;
    case 'p':
      append_number(out, c("ll", 'x'), unsigned_value(bytes));
      break;
    case 'a':
      append_string(out, c("", 's'), time.symbols.address(unsigned_value(bytes)));
      break;
    case 'A':
      append_string(out, c("", 's'), time.symbols.symbol(ValueForm::uaddr, bytes));
      break;
    case 'k': {
      // '-' makes the width the indentation too.
      const bool left = conversion.left || columns.width < 0;
      const auto width = static_cast<int>(std::min(std::abs(columns.width), kWidest));
      time.symbols.stack(out, datum.desc.form, bytes, left ? width : 0, left ? -width : width);
      break;
    }
    case 'c':
      if (wide) {
        std::string text;
        append_wide(text, static_cast<std::uint32_t>(unsigned_value(bytes)));
        append_string(out, c("", 's'), text);
      } else {
        append_character(out, c("", 'c'), static_cast<int>(unsigned_value(bytes) & 0xff));
      }
      break;
    case 'C': {
      const char character = static_cast<char>(unsigned_value(bytes));
      append_string(out, c("", 's'), escaped({&character, 1}));
      break;
    }
    case 's':
    case 'I':
      append_string(out, c("", 's'), wide ? wide_text(bytes) : text_of(bytes));
      break;
    case 'S':
      append_string(out, c("", 's'), escaped(text_of(bytes)));
      break;
    case 'Y':
    case 'T':
      append_string(out, c("", 's'), time_text(signed_value(bytes), conversion.conversion, time));
      break;
    case 'P':
      append_string(out, c("", 's'), std::to_string(unsigned_value(bytes) & 0xffff));
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
      append_floating(
          out, [&](const char* length) { return c(length, conversion.conversion); }, bytes);
      break;
    default:
      // A conversion without a printer of its own shows the number.
      append(out, "0x%llx", static_cast<unsigned long long>(unsigned_value(bytes)));
      break;
  }
}

// %@: the value of an aggregation. count() and its like are divided as the conversion reads them;
// avg() and stddev() are unsigned, unlike in the default layout.
void print_aggregation_conversion(std::string& out, const Conversion& conversion,
                                  const Columns& columns, const AggTable& table,
                                  const std::vector<std::int64_t>& data, const TimeFormat& time,
                                  const AggDisplay& display) {
  const AggFunction function = table.spec.function;
  if (is_distribution(function)) {
    print_distribution(out, table, data, display);
    return;
  }
  Conversion shown = conversion;
  const char letter = conversion.conversion;
  const bool as_unsigned =
      letter == 'u' || letter == 'o' || letter == 'x' || letter == 'X' || letter == 'p';
  std::uint64_t value = 0;
  if (function == AggFunction::avg) {
    value = data[0] == 0 ? 0
                         : static_cast<std::uint64_t>(data[1]) / table.normal /
                               static_cast<std::uint64_t>(data[0]);
    if (!as_unsigned) shown.conversion = 'u';
  } else if (function == AggFunction::stddev) {
    value = stddev_value(data, table.normal);
    if (!as_unsigned) shown.conversion = 'u';
  } else if (as_unsigned) {
    value = static_cast<std::uint64_t>(data[0]) / table.normal;
  } else {
    value = static_cast<std::uint64_t>(
        divide_wrapping(data[0], static_cast<std::int64_t>(table.normal)));
  }
  ValueDesc number;
  print_conversion(out, shown, columns, {number, std::as_bytes(std::span(&value, 1))}, time);
}

}  // namespace

void print_format(std::string& out, const Format& format, const std::vector<Datum>& values,
                  const TimeFormat& time) {
  std::size_t next = 0;
  const auto take_int = [&] {
    return next < values.size() ? static_cast<int>(signed_value(values[next++].bytes)) : 0;
  };
  for (const Conversion& conversion : format.conversions) {
    out += conversion.literal;
    if (conversion.conversion == 0) continue;
    if (conversion.conversion == '%') {
      out += '%';
      continue;
    }
    Columns columns = columns_of(conversion);
    if (conversion.width_arg) columns.width = take_int();
    if (conversion.precision_arg) columns.precision = take_int();
    if (next >= values.size()) continue;
    print_conversion(out, conversion, columns, values[next++], time);
  }
}

void print_format_row(std::string& out, const Format& format,
                      const std::vector<const AggTable*>& tables, const AggRow& row,
                      const TimeFormat& time, const AggDisplay& display) {
  std::size_t next_key = 0;
  std::size_t next_table = 0;
  const auto bytes_of = [](const KeyPart& part) { return std::as_bytes(std::span(part.bytes)); };
  const auto take_int = [&] {
    return next_key < row.parts.size()
               ? static_cast<int>(signed_value(bytes_of(row.parts[next_key++])))
               : 0;
  };
  for (const Conversion& conversion : format.conversions) {
    out += conversion.literal;
    if (conversion.conversion == 0) continue;
    if (conversion.conversion == '%' && !conversion.aggregation) {
      out += '%';
      continue;
    }
    Columns columns = columns_of(conversion);
    if (conversion.width_arg) columns.width = take_int();
    if (conversion.precision_arg) columns.precision = take_int();
    if (conversion.aggregation) {
      // The last aggregation repeats.
      const std::size_t at = std::min(next_table++, tables.size() - 1);
      print_aggregation_conversion(out, conversion, columns, *tables[at], *row.data[at], time,
                                   display);
      continue;
    }
    if (next_key >= row.parts.size()) continue;
    const KeyPart& part = row.parts[next_key++];
    print_conversion(out, conversion, columns, {part.desc, bytes_of(part)}, time);
  }
}

}  // namespace dtmalloc::dtrace
