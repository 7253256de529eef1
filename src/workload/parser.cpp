// SPDX-License-Identifier: BSD-2-Clause
// Scanning: blanks, words, strings, numbers, and where an error stands.

#include "workload/parser.hpp"

#include <cstring>
#include <limits>

namespace dtmalloc::workload {

const std::array<std::array<const char*, 2>, 5> kBuiltinTypes{{{"M_CACHE", "cache"},
                                                               {"M_DEVBUF", "devbuf"},
                                                               {"M_TEMP", "temp"},
                                                               {"M_UMA", "UMA"},
                                                               {"M_UMAHASH", "UMAHash"}}};

namespace {

constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();

bool word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool word_char(char c) { return word_start(c) || digit(c) || c == '.'; }

int hex_digit(char c) {
  if (digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::int64_t suffix_factor(std::string_view suffix, Context context) {
  if (suffix.empty()) return 1;
  if (context == Context::time) {
    if (suffix == "ns") return 1;
    if (suffix == "us") return 1000;
    if (suffix == "ms") return 1000000;
    if (suffix == "s") return 1000000000;
    return 0;
  }
  if (context == Context::plain) return 0;
  if (suffix == "K") return std::int64_t{1} << 10;
  if (suffix == "M") return std::int64_t{1} << 20;
  if (suffix == "G") return std::int64_t{1} << 30;
  if (suffix == "T") return std::int64_t{1} << 40;
  return 0;
}

}  // namespace

Parser::Parser(std::string text, std::string file)
    : source_(std::make_shared<const std::string>(std::move(text))), text_(*source_) {
  place_ = line_start_ = text_.data();
  end_ = place_ + text_.size();
  result_.file = std::move(file);
  result_.text = source_;
  result_.bodies.emplace_back();
  builtin_types();
}

void Parser::builtin_types() {
  for (const auto& [symbol, desc] : kBuiltinTypes) {
    types_.emplace(symbol, static_cast<Index>(result_.types.size()));
    result_.types.push_back({symbol, desc, "", true, false});
  }
}

Workload Parser::take() {
  if (const void* nul = std::memchr(text_.data(), 0, text_.size())) {
    const char* at = static_cast<const char*>(nul);
    for (const char* c = text_.data(); c < at; ++c) {
      if (*c != '\n') continue;
      ++line_;
      line_start_ = c + 1;
    }
    fail("WL_NUL", {at, 1}, "a NUL byte: this is no text file", "a workload, one statement a line");
  }
  if (text_.starts_with("\xef\xbb\xbf")) {
    fail("WL_SYNTAX", text_.substr(0, 3), "a UTF-8 byte order mark", "the first statement");
  }
  std::vector<Op> ops;
  statements(ops, false, 0);
  result_.bodies[0] = std::move(ops);
  check_names();
  return std::move(result_);
}

void Parser::skip_blanks() {
  while (place_ < end_ && (*place_ == ' ' || *place_ == '\t' || *place_ == '\r')) ++place_;
}

bool Parser::at_statement_end() {
  skip_blanks();
  return place_ == end_ || *place_ == '\n' || *place_ == '#' || *place_ == '}';
}

bool Parser::eat(char c) {
  skip_blanks();
  if (place_ == end_ || *place_ != c) return false;
  ++place_;
  return true;
}

bool Parser::next_is_word() const { return place_ < end_ && word_start(*place_); }

std::string_view Parser::peek_word() const {
  const char* last = place_;
  if (last < end_ && word_start(*last)) {
    while (last < end_ && word_char(*last)) ++last;
  }
  return {place_, static_cast<std::size_t>(last - place_)};
}

std::string_view Parser::word(const char* expected) {
  skip_blanks();
  const std::string_view found = peek_word();
  if (found.empty()) fail_here("WL_SYNTAX", "something else was expected here", expected);
  place_ += found.size();
  return found;
}

std::string Parser::string_literal(const char* expected) {
  skip_blanks();
  const char* start = place_;
  if (place_ == end_ || *place_ != '"') {
    fail_here("WL_SYNTAX", "a string in double quotes is missing", expected);
  }
  ++place_;
  std::string out;
  while (true) {
    const char* run = place_;
    while (place_ < end_ && *place_ != '"' && *place_ != '\\' && *place_ != '\n') ++place_;
    out.append(run, place_);
    if (place_ == end_ || *place_ == '\n') {
      fail("WL_STRING", {start, static_cast<std::size_t>(place_ - start)},
           "the string does not end on its line", "a closing \"");
    }
    if (*place_++ == '"') return out;
    const char escape = place_ < end_ ? *place_++ : '\0';
    switch (escape) {
      case '"':
      case '\\':
        out.push_back(escape);
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'x': {
        const int high = place_ < end_ ? hex_digit(*place_) : -1;
        const int low = high >= 0 && place_ + 1 < end_ ? hex_digit(place_[1]) : -1;
        if (low >= 0 && high * 16 + low != 0) {
          out.push_back(static_cast<char>(high * 16 + low));
          place_ += 2;
          break;
        }
        [[fallthrough]];
      }
      default:
        fail("WL_STRING", {place_ - 2, 2}, "unknown escape in a string",
             "\\\" \\\\ \\n \\t or \\xNN (not \\x00)");
    }
  }
}

std::string Parser::word_or_string(const char* expected) {
  if (place_ < end_ && *place_ == '"') return string_literal(expected);
  const char* const start = place_;
  while (place_<end_&& static_cast<unsigned char>(*place_)> ' ' && *place_ != '#' && *place_ != '}')
    ++place_;
  if (place_ == start) fail_here("WL_SYNTAX", "a value is missing", expected);
  return {start, place_};
}

std::int64_t Parser::number(Context context) {
  skip_blanks();
  const char* start = place_;
  std::int64_t value = 0;
  bool too_large = false;
  const auto add = [&](int base, int d) {
    if (value > (kMaxNumber - d) / base) too_large = true;
    if (!too_large) value = value * base + d;
  };
  if (end_ - place_ > 2 && place_[0] == '0' && place_[1] == 'x' && hex_digit(place_[2]) >= 0) {
    place_ += 2;
    while (place_ < end_ && hex_digit(*place_) >= 0) add(16, hex_digit(*place_++));
  } else {
    while (place_ < end_ && digit(*place_)) add(10, *place_++ - '0');
  }
  const char* suffix_start = place_;
  while (place_ < end_ && word_char(*place_)) ++place_;
  const std::string_view suffix(suffix_start, static_cast<std::size_t>(place_ - suffix_start));
  const std::string_view all(start, static_cast<std::size_t>(place_ - start));
  const std::int64_t factor = suffix_factor(suffix, context);
  if (factor == 0) {
    fail("WL_NUMBER", all, "\"" + std::string(all) + "\" is no number",
         context == Context::time    ? "a time such as 20ns, 3us, 5ms, 2s"
         : context == Context::plain ? "a decimal or 0x number"
                                     : "a size such as 100, 4K, 2M, 1G");
  }
  if (too_large || value > kMaxNumber / factor) {
    fail("WL_RANGE", all, "number out of range", "at most 9223372036854775807");
  }
  return value * factor;
}

void Parser::end_statement() {
  if (!at_statement_end()) {
    fail_here("WL_SYNTAX", "the statement should end here", "a new line, or # and a comment");
  }
}

std::string_view Parser::rest_token() const {
  const char* last = place_;
  while (last < end_ && *last != ' ' && *last != '\t' && *last != '\n' && *last != '\r') ++last;
  if (last == place_ && last < end_) ++last;
  return {place_, static_cast<std::size_t>(last - place_)};
}

void Parser::fail(const char* tag, std::string_view at, std::string message, std::string expected,
                  std::vector<std::string> near) const {
  Diagnostic d;
  d.tag = tag;
  const char* line_end = line_start_;
  while (line_end < end_ && *line_end != '\n') ++line_end;
  d.where = {result_.file, line_, static_cast<std::uint32_t>(at.data() - line_start_ + 1),
             static_cast<std::uint32_t>(std::max<std::size_t>(at.size(), 1))};
  d.message = std::move(message);
  // A line may be long; what to_string() shows is around the place.
  d.source_line.assign(line_start_, line_end);
  d.expected = std::move(expected);
  d.near_names = std::move(near);
  throw ParseError{std::move(d)};
}

void Parser::fail_here(const char* tag, std::string message, std::string expected) const {
  fail(tag, rest_token(), std::move(message), std::move(expected));
}

Result<Workload> parse(std::string text, std::string file) {
  try {
    return Parser(std::move(text), std::move(file)).take();
  } catch (ParseError& error) {
    return std::move(error.diagnostic);
  }
}

}  // namespace dtmalloc::workload
