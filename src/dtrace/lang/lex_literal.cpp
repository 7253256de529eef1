// SPDX-License-Identifier: BSD-2-Clause
// Constants and macro arguments: integers and their types, characters, strings, $1 and $name.
// Counterpart:  dt_lex.l, dt_strtab.c (stresc2chr)
#include <fmt/format.h>

#include <cctype>
#include <limits>

#include "dtrace/dif/ascii.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

bool is_suffix(char c) { return c == 'u' || c == 'U' || c == 'l' || c == 'L'; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
unsigned digit_value(char c) {
  return is_digit(c) ? static_cast<unsigned>(c - '0') : static_cast<unsigned>(lower(c) - 'a' + 10);
}

}  // namespace

std::uint64_t Lexer::parse_digits(std::string_view digits, const Place& place, std::string_view tag,
                                  std::string_view name) const {
  unsigned base = 10;
  std::size_t i = 0;
  if (digits.size() > 1 && digits[0] == '0') {
    const bool hex = lower(digits[1]) == 'x';
    base = hex ? 16 : 8;
    i = hex ? 2 : 1;
  }
  std::uint64_t value = 0;
  for (; i < digits.size(); ++i) {
    const unsigned digit = digit_value(digits[i]);
    if (digit >= base) {
      source_.fail("D_INT_DIGIT", place,
                   fmt::format("constant {} contains invalid digit {}", digits, digits[i]));
    }
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / base) {
      source_.fail(tag, place,
                   name.empty()
                       ? fmt::format("constant {} results in integer overflow", digits)
                       : fmt::format("macro argument {} constant {} results in integer overflow",
                                     name, digits));
    }
    value = value * base + digit;
  }
  return value;
}

// The first type of the list int, unsigned, long, ... that the constant's form allows and that
// holds it.
TypeId Lexer::constant_type(std::uint64_t value, bool decimal, std::string_view suffix,
                            const Place& place) const {
  struct Candidate {
    TypeId type;
    std::uint64_t most;
    bool is_signed;
  };
  const auto most = [](unsigned bits) { return std::numeric_limits<std::uint64_t>::max() >> bits; };
  const Candidate candidates[] = {
      {types_.int_type, most(33), true},     {types_.uint_type, most(32), false},
      {types_.long_type, most(1), true},     {types_.ulong_type, most(0), false},
      {types_.longlong_type, most(1), true}, {types_.ulonglong_type, most(0), false},
  };
  const bool has_u = !suffix.empty() && suffix[0] == 'u';
  std::size_t first = 0;
  for (const char c : suffix) first += lower(c) == 'l' ? 2 : 0;
  for (std::size_t i = first; i < 6; ++i) {
    if (has_u && candidates[i].is_signed) continue;
    if (!has_u && decimal && !candidates[i].is_signed) continue;
    if (value <= candidates[i].most) return candidates[i].type;
  }
  source_.fail("D_INT_OFLOW", place,
               fmt::format("integer constant {:#x} cannot be represented in any built-in integral "
                           "type",
                           value));
}

Token Lexer::number() {
  const std::size_t start = at_;
  const auto floating = [&] {
    while (!done() && (is_word(peek()) || peek() == '.')) ++at_;
    source_.fail("D_SYNTAX", token(Tok::integer, start).place,
                 "floating-point constants are not permitted");
  };
  const bool hex = peek() == '0' && lower(peek(1)) == 'x' && is_hex(peek(2));
  if (hex) at_ += 2;
  while (!done() && (hex ? is_hex(peek()) : is_digit(peek()))) ++at_;
  const bool exponent =
      lower(peek()) == 'e' &&
      (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))));
  if (state_ != State::clauses && !hex && (peek() == '.' || exponent)) floating();
  const std::string_view digits = text_.substr(start, at_ - start);
  const std::size_t suffix_start = at_;
  if (state_ != State::clauses) {
    if (lower(peek()) == 'u') ++at_;
    for (int i = 0; i < 2 && lower(peek()) == 'l'; ++i) ++at_;
  }
  const std::string_view suffix = text_.substr(suffix_start, at_ - suffix_start);
  Token result = token(Tok::integer, start);
  result.value = parse_digits(digits, result.place, "D_INT_OFLOW", {});
  result.type =
      constant_type(result.value, digits[0] != '0' || digits.size() == 1, suffix, result.place);
  return result;
}

std::string Lexer::escapes(std::string_view raw) const {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    constexpr std::string_view kFrom = "abfnrtv\"\\";
    constexpr std::string_view kTo = "\a\b\f\n\r\t\v\"\\";
    if (const std::size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out += kTo[simple];
    } else if (c >= '0' && c <= '7') {
      unsigned value = 0;
      std::size_t end = i;
      for (; end < raw.size() && end < i + 3 && raw[end] >= '0' && raw[end] <= '7'; ++end) {
        value = value * 8 + static_cast<unsigned>(raw[end] - '0');
      }
      i = end - 1;
      out += static_cast<char>(value);
    } else if (c == 'x' && i + 1 < raw.size() && is_hex(raw[i + 1])) {
      unsigned value = 0;
      for (++i; i < raw.size() && is_hex(raw[i]); ++i) value = value * 16 + digit_value(raw[i]);
      --i;
      out += static_cast<char>(value);
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

Token Lexer::string_literal() {
  const std::size_t start = at_++;
  while (!done() && peek() != '"' && peek() != '\n') at_ += peek() == '\\' && !done(1) ? 2 : 1;
  at_ = std::min(at_, text_.size());
  if (done() || peek() != '"') {
    // A backslash does not hide the end of the line.
    const std::size_t line_end = std::min(text_.find('\n', start), text_.size());
    at_ = line_end;
    source_.fail("D_STR_NL", token(Tok::string, start).place,
                 "newline encountered in string literal");
  }
  if (const std::size_t newline = text_.find('\n', start); newline < at_) {
    at_ = newline;
    source_.fail("D_STR_NL", token(Tok::string, start).place,
                 "newline encountered in string literal");
  }
  ++at_;
  Token result = token(Tok::string, start);
  result.text = escapes(text_.substr(start + 1, at_ - start - 2));
  // A NUL ends the text, as it does in C.
  if (const std::size_t nul = result.text.find('\0'); nul != std::string::npos) {
    result.text.resize(nul);
  }
  return result;
}

Token Lexer::character() {
  const std::size_t start = at_++;
  while (!done() && peek() != '\'' && peek() != '\n') {
    at_ += peek() == '\\' && !done(1) && peek(1) != '\n' ? 2 : 1;
  }
  if (done() || peek() != '\'') {
    source_.fail("D_CHR_NL", token(Tok::integer, start).place,
                 "newline encountered in character constant");
  }
  ++at_;
  Token result = token(Tok::integer, start);
  const std::string bytes = escapes(text_.substr(start + 1, at_ - start - 2));
  if (bytes.empty()) source_.fail("D_CHR_NULL", result.place, "empty character constant");
  if (bytes.size() > 8) {
    source_.fail("D_CHR_OFLOW", result.place, "character constant is too long");
  }
  for (const char c : bytes) {
    result.value = result.value << 8 | static_cast<unsigned char>(c);
  }
  result.type = constant_type(result.value, true, {}, result.place);
  return result;
}

Token Lexer::macro() {
  const std::size_t start = at_++;
  const bool as_string = peek() == '$';
  if (as_string) ++at_;
  const std::size_t name_start = at_;
  if (is_digit(peek())) {
    while (!done() && is_digit(peek())) ++at_;
  } else {
    while (!done() && is_word(peek())) ++at_;
  }
  const std::string_view name = text_.substr(name_start, at_ - name_start);
  Token result = token(as_string ? Tok::string : Tok::integer, start);
  if (name.empty()) return token(Tok::other, start);
  const std::string_view shown = text_.substr(start, at_ - start);
  if (!is_digit(name[0])) {
    for (const auto& [macro_name, value] : input_.macros) {
      if (macro_name != name) continue;
      result.text = std::to_string(value);
      result.value = static_cast<std::uint64_t>(value);
      result.type = types_.int_type;
      return result;
    }
    source_.fail("D_MACRO_UNDEF", result.place,
                 fmt::format("macro variable {} is not defined", shown));
  }
  const std::size_t number = name.size() > 9 ? 999999999 : std::stoul(std::string(name));
  if (number >= input_.arguments.size()) {
    if (!input_.defaultargs) {
      source_.fail("D_MACRO_UNDEF", result.place,
                   fmt::format("macro argument {} is not defined", shown));
    }
    result.type = types_.int_type;
    return result;
  }
  referenced_.insert(number);
  const std::string& argument = input_.arguments[number];
  result.text = argument;
  if (as_string) return result;
  const bool negative = argument.starts_with('-');
  std::string_view digits = std::string_view(argument).substr(negative ? 1 : 0);
  while (!digits.empty() && is_suffix(digits.back())) digits.remove_suffix(1);
  const bool hex = digits.size() > 2 && digits[0] == '0' && lower(digits[1]) == 'x';
  bool integer = !digits.empty();
  for (std::size_t i = hex ? 2 : 0; i < digits.size(); ++i) {
    integer = integer && (hex ? is_hex(digits[i]) : is_digit(digits[i]));
  }
  if (!integer) {
    result.kind = Tok::identifier;
    return result;
  }
  result.value = parse_digits(digits, result.place, "D_MACRO_OFLOW", shown);
  result.type =
      constant_type(result.value, digits[0] != '0' || digits.size() == 1, {}, result.place);
  if (negative) result.value = 0 - result.value;
  return result;
}

bool Lexer::expand_macros(std::string_view text, std::string* out) {
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      *out += text[i++];
      continue;
    }
    std::size_t end = ++i;
    const bool digits = i < text.size() && is_digit(text[i]);
    while (end < text.size() && (digits ? is_digit(text[end]) : is_word(text[end]))) ++end;
    const std::string_view name = text.substr(i, end - i);
    i = end;
    if (digits && name.size() < 9) {
      const std::size_t number = std::stoul(std::string(name));
      if (number >= input_.arguments.size()) return false;
      referenced_.insert(number);
      *out += input_.arguments[number];
      continue;
    }
    bool found = false;
    for (const auto& [macro_name, value] : input_.macros) {
      if (macro_name != name) continue;
      *out += std::to_string(value);
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace dtmalloc::dtrace
